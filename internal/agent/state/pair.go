package state

import (
	"net/netip"
	"slices"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// Pair is a pair of devices that the agent makes for a host port, and the addresses that it set on the host's end. The
// record is written before the pair is made, so that everything that a crash leaves is known to be the agent's; an
// alias would be no proof, because anybody can set it.
type Pair struct {
	ID plan.PortID `json:"id"`
	// Host and End are the names with which the host's and the switch's end are made.
	Host string `json:"host"`
	End  string `json:"end"`
	// MAC is the address with which the host's end is made.
	MAC plan.MAC `json:"mac"`
	// Index and HostIndex are the ifindexes of the switch's and the host's end, 0 before they are known; Own is the
	// address of the switch's end.
	Index     uint32   `json:"ifindex,omitzero"`
	HostIndex uint32   `json:"hostIfindex,omitzero"`
	Own       plan.MAC `json:"own,omitzero"`
	// Put are the addresses that the agent set on the host's end. Counted: the list is complete; it is not for a pair
	// that another version, or an adoption, made.
	Put     []netip.Prefix `json:"put,omitempty"`
	Counted bool           `json:"counted,omitzero"`
}

// Is reports whether the device is the switch's end of the pair, whatever its name is now. A pair that may have been
// made just before a crash is recognised by its names and the address of the host's end.
func (p *Pair) Is(d hostdev.Device) bool {
	if d.Kind != hostdev.Veth {
		return false
	}
	if p.Index == 0 {
		return d.Name == p.End && !d.Peer.Elsewhere && d.Peer.Seen && d.Peer.MAC == p.MAC
	}
	return d.Index == p.Index && (d.MAC == p.Own || !d.Peer.Elsewhere && d.Peer.Index == p.HostIndex)
}

// Has reports whether the device is one of the two ends.
func (p *Pair) Has(d hostdev.Device) bool {
	if p.Is(d) {
		return true
	}
	if p.Index == 0 {
		return d.Kind == hostdev.Veth && d.Name == p.Host && d.MAC == p.MAC
	}
	return d.Kind == hostdev.Veth && d.Index == p.HostIndex && (d.MAC == p.MAC || d.Peer.Index == p.Index)
}

// Made records the ends of a pair that exists.
func (p *Pair) Made(end hostdev.Device) {
	p.Index, p.Own = end.Index, end.MAC
	if !end.Peer.Elsewhere {
		p.HostIndex = end.Peer.Index
	}
}

// PairOf returns the pair that was made with that name of the host's end, nil if there is none.
func (s *Devices) PairOf(host string) *Pair {
	for i := range s.Pairs {
		if s.Pairs[i].Host == host {
			return &s.Pairs[i]
		}
	}
	return nil
}

// PutPair adds a pair, and replaces the one of the same name.
func (s *Devices) PutPair(p Pair) *Pair {
	s.DropPair(p.Host)
	s.Pairs = append(slices.Clip(s.Pairs), p)
	return &s.Pairs[len(s.Pairs)-1]
}

// DropPair removes the pair that was made with that name of the host's end.
func (s *Devices) DropPair(host string) {
	s.Pairs = slices.DeleteFunc(slices.Clone(s.Pairs), func(p Pair) bool { return p.Host == host })
}

// DropPairAt removes the pair whose switch's end has, or had, that ifindex.
func (s *Devices) DropPairAt(index uint32) {
	s.Pairs = slices.DeleteFunc(slices.Clone(s.Pairs), func(p Pair) bool { return p.Index == index })
}
