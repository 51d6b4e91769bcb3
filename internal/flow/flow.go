package flow

import (
	"net/netip"

	"heddle/internal/plan"
)

// Direction is seen from the switch, with the values of IPFIX element 61.
type Direction uint8

// The directions.
const (
	Ingress Direction = 0 // from the port's owner, or the wire, into the switch
	Egress  Direction = 1 // from the switch to the port's owner, or the wire
)

// Key identifies a flow. It has no pointers, so that a million of them cost the garbage collector nothing. Fields
// that a frame does not have are zero.
type Key struct {
	Point uint16 // slot of the port or uplink where it was observed (see Point)
	VLAN  uint16 // segment: VID 0–4094, 0 = untagged; plus AD for an 802.1ad VLAN; or a number of Point.Overlay
	// of the innermost header that was read: 0x0800, 0x86dd, or another for a flow identified by its MACs alone
	EtherType uint16
	Direction Direction
	Protocol  uint8 // of IP; for IPv6 the one of the upper layer
	SrcMAC    plan.MAC
	DstMAC    plan.MAC
	// Src and Dst are 16 bytes each; an IPv4 address is in the first four, the others are zero.
	Src, Dst [16]byte
	// SrcPort and DstPort are the ports of TCP, UDP, SCTP, UDP-Lite and DCCP, in host byte order. For ICMP and
	// ICMPv6, DstPort is type << 8 | code and SrcPort is 0.
	SrcPort, DstPort uint16
}

// AD marks the VLAN of a Key as an 802.1ad one.
const AD = 1 << 12

// EtherTypes of a Key.
const (
	IPv4 = 0x0800
	IPv6 = 0x86dd
)

// Addresses are the source and destination; invalid ones for a flow without IP.
func (k Key) Addresses() (src, dst netip.Addr) {
	switch k.EtherType {
	case IPv4:
		return netip.AddrFrom4([4]byte(k.Src[:4])), netip.AddrFrom4([4]byte(k.Dst[:4]))
	case IPv6:
		return netip.AddrFrom16(k.Src), netip.AddrFrom16(k.Dst)
	}
	return netip.Addr{}, netip.Addr{}
}

// Counts are the counts of a flow over some time. A frame that stands for several packets (GSO) counts as that many.
type Counts struct {
	Packets uint64
	// Bytes are the bytes of layer 3, IP header and payload, like octetDeltaCount; for a flow without IP, what
	// follows the Ethernet header and its tag.
	Bytes uint64
	// FrameBytes are the bytes of whole frames without the checksum, as in the port's counters.
	FrameBytes uint64
	// First and Last are when the first and the last packet were seen, in milliseconds since 1970 by the host's clock.
	First, Last int64
	// In and Out are the slots where the last frame came in and went out; 0 = none or several (flooded).
	In, Out uint16
	// TCPFlags are the flags of all packets together, like element 6 in 16 bits (NS, CWR, …, FIN).
	TCPFlags uint16
	// TOS is the traffic class byte of the first packet, DSCP and ECN.
	TOS uint8
	// MinTTL and MaxTTL are TTLs or hop limits.
	MinTTL, MaxTTL uint8
}

// Add adds counts of a later time or another place.
func (c *Counts) Add(d Counts) {
	if d.Packets == 0 {
		return
	}
	if c.Packets == 0 {
		*c = d
		return
	}
	c.Packets, c.Bytes, c.FrameBytes = c.Packets+d.Packets, c.Bytes+d.Bytes, c.FrameBytes+d.FrameBytes
	c.TCPFlags |= d.TCPFlags
	c.MinTTL, c.MaxTTL = min(c.MinTTL, d.MinTTL), max(c.MaxTTL, d.MaxTTL)
	if d.First < c.First {
		c.First, c.TOS = d.First, d.TOS
	}
	if d.Last >= c.Last {
		c.Last, c.In, c.Out = d.Last, d.In, d.Out
	}
}

// Point is a port or uplink where flows are observed.
type Point struct {
	ID     plan.PortID
	Uplink bool
	// Number is what operators and collectors see: the port's number on its host.
	Number    uint32
	PortGroup string // "" of an uplink
	Device    string // "" when it has none at present
	Ifindex   uint32
	MAC       plan.MAC
	// Overlay are the overlay segments of the point, nil where it has none: the VLAN of a Key is the number of one.
	// Points share it: do not change it.
	Overlay *Overlay `json:",omitempty"`
}

// Overlay are overlay segments by the numbers that they have in keys.
type Overlay map[uint16]Segment

// Segment is an overlay segment.
type Segment struct {
	VNI  uint32
	VLAN uint16 // inside the VNI, 0 = untagged
}

// Segment returns the overlay segment of a Key's VLAN; false where that is a VLAN, as always with nil.
func (o *Overlay) Segment(vlan uint16) (Segment, bool) {
	if o == nil {
		return Segment{}, false
	}
	s, ok := (*o)[vlan]
	return s, ok
}

// Same reports whether a point is the same as another one; its overlay segments don't count.
func (p Point) Same(q Point) bool {
	p.Overlay, q.Overlay = nil, nil
	return p == q
}

// Renumbered reports whether a number of p's overlay segments is that of another segment in q.
func (p Point) Renumbered(q Point) bool {
	if p.Overlay == nil || p.Overlay == q.Overlay {
		return false
	}
	for n, s := range *p.Overlay {
		if t, ok := q.Overlay.Segment(n); ok && s != t {
			return true
		}
	}
	return false
}

// Points are the observation points of a host by slot.
type Points map[uint16]Point

// Loss is what could not be recorded at a point since it got its slot, because the flow table was full. Packets that
// sampling skips are not a loss.
type Loss struct {
	Point                      uint16
	Packets, Bytes, FrameBytes uint64
	// Flows is how often a flow could not begin.
	Flows uint64
}

// Batch is a part of the counts of one drain. Within a batch no key comes twice. Batches are numbered from 1 in the
// order in which they are drained, also across agents. A batch that was drained but not confirmed comes again with the
// same number and the same content (perhaps divided differently). So a receiver that stores with each flow the number
// of the batch it added last adds nothing twice. The batch's memory is reused: copy what you need later.
type Batch struct {
	Number uint64
	Keys   []Key
	Counts []Counts // of each key
}

// Source is where flows are counted: the kernel's tables.
type Source interface {
	// Drain takes out everything counted so far. add gets the batches in order of their numbers and must have
	// stored each when it returns, because the source then forgets it. An error of add ends the drain; batches that
	// were not added stay.
	Drain(add func(Batch) error) error
	// Points are the observation points by slot; do not change them. A slot is given to another port only after its
	// counts have been drained.
	Points() Points
	// Losses are the losses of every point that has any.
	Losses() ([]Loss, error)
}

// EndReason is why a record was made, with the values of IPFIX element 136.
type EndReason uint8

// The reasons.
const (
	IdleTimeout   EndReason = 1
	ActiveTimeout EndReason = 2
	EndOfFlow     EndReason = 3 // TCP FIN or RST was seen, and no packet since
	ForcedEnd     EndReason = 4 // the agent stops, the port is removed, its guest has left, or metering is switched off
	NoResources   EndReason = 5 // the agent's table was full
)

// Record is a report about a flow at one time.
type Record struct {
	Key    Key
	Reason EndReason
	// Start is when the flow began, in milliseconds since 1970: together with the key it identifies the flow, also
	// in a record that is sent twice.
	Start int64
	// Delta is the counts since the flow's previous record, Total the counts since Start.
	Delta, Total Counts
	// Reverse is the other direction of the same conversation, in a biflow (RFC 5103); nil in a record of one
	// direction.
	Reverse *Reverse
}

// Reverse is the other direction of a biflow.
type Reverse struct {
	Start        int64
	Delta, Total Counts
}
