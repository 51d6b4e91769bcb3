package state

import (
	"net/netip"
	"slices"

	"heddle/internal/host/hostdev"
	"heddle/internal/plan"
)

// Pair is a pair of devices that the agent makes for a host port, and what it put on the host's end. It is written down
// before the pair is made, so that whatever a crash leaves is known to be the agent's: an alias can be set by anybody.
type Pair struct {
	ID plan.PortID `json:"id"`
	// Host and End are the names that the host's and the switch's end are made with.
	Host string `json:"host"`
	End  string `json:"end"`
	// MAC is the address that the host's end is made with.
	MAC plan.MAC `json:"mac"`
	// Index and HostIndex are those of the switch's and the host's end, 0 before they are known; Own is the switch's
	// end's address.
	Index     uint32   `json:"ifindex,omitzero"`
	HostIndex uint32   `json:"hostIfindex,omitzero"`
	Own       plan.MAC `json:"own,omitzero"`
	// Put are the addresses that the agent put on the host's end; Counted: the list is whole, as it is not of a pair
	// that another version, or an adoption, made.
	Put     []netip.Prefix `json:"put,omitempty"`
	Counted bool           `json:"counted,omitzero"`
}

// Is reports whether the device is the switch's end of the pair, whatever its name is by now. A pair that may have
// been made just before a crash is known by its names and the address of the host's end.
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

// Made takes down the ends of a pair that is there.
func (p *Pair) Made(end hostdev.Device) {
	p.Index, p.Own = end.Index, end.MAC
	if !end.Peer.Elsewhere {
		p.HostIndex = end.Peer.Index
	}
}

// PairOf is the pair that was made with that name of the host's end, nil for none.
func (s *State) PairOf(host string) *Pair {
	for i := range s.Pairs {
		if s.Pairs[i].Host == host {
			return &s.Pairs[i]
		}
	}
	return nil
}

// PutPair adds a pair in place of the one of that name.
func (s *State) PutPair(p Pair) *Pair {
	s.DropPair(p.Host)
	s.Pairs = append(slices.Clip(s.Pairs), p)
	return &s.Pairs[len(s.Pairs)-1]
}

// DropPair forgets the pair that was made with that name of the host's end.
func (s *State) DropPair(host string) {
	s.Pairs = slices.DeleteFunc(slices.Clone(s.Pairs), func(p Pair) bool { return p.Host == host })
}

// DropPairAt forgets the pair whose switch's end has, or had, that index.
func (s *State) DropPairAt(index uint32) {
	s.Pairs = slices.DeleteFunc(slices.Clone(s.Pairs), func(p Pair) bool { return p.Index == index })
}
