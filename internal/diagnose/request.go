package diagnose

import (
	"net/netip"

	"heddle/internal/plan"
)

// Request asks what happens to frames that enter at a port or uplink.
type Request struct {
	// From is where they enter: a port, an uplink, or SWITCH/UPLINK if several switches have one of that name.
	From string `json:"from"`
	// To is the port for which they are meant. Without Frame and Frames the question is: can From and To talk?
	To string `json:"to,omitempty"`
	// Frame is a frame given by its fields.
	Frame *Fields `json:"frame,omitempty"`
	// Frames are frames in their bytes, without FCS, in the order they are sent; at most MaxFrames.
	Frames [][]byte `json:"frames,omitempty"`
	// Packet is the number, from 1, of the one of Frames that is reported in full; those before it are sent first. 0 =
	// all of them.
	Packet int `json:"packet,omitempty"`
	// Through is the packet of a tunnel in which the frames come, where From is one; nil otherwise.
	Through *Through `json:"through,omitempty"`
}

// Through is a packet that carries a frame through a tunnel.
type Through struct {
	VNI uint32 `json:"vni"`
	// Source and Destination are the outer addresses. One that is not valid is taken to be right.
	Source      netip.Addr `json:"source,omitzero"`
	Destination netip.Addr `json:"destination,omitzero"`
}

// Bounds of a request.
const (
	MaxFrames = 10_000
	// MaxLength is the longest frame in bytes, with its tags and without FCS.
	MaxLength = 9200
)

// Fields are the fields of a frame; missing ones are filled in as the sender would.
type Fields struct {
	DstMAC *plan.MAC `json:"dstMac,omitempty"`
	SrcMAC *plan.MAC `json:"srcMac,omitempty"`
	// VLAN is the 802.1Q tag of the frame, 0–4094; nil = untagged. Outer is an 802.1ad tag before it.
	VLAN  *uint16 `json:"vlan,omitempty"`
	Outer *uint16 `json:"outer,omitempty"`
	// EtherType is for a frame that is neither ARP nor IP.
	EtherType *uint16 `json:"etherType,omitempty"`
	// At most one of these is set.
	ARP *Addresses `json:"arp,omitempty"`
	IP  *Addresses `json:"ip,omitempty"` // IPv4 or IPv6
	// At most one of these, together with IP.
	TCP  *Ports `json:"tcp,omitempty"`
	UDP  *Ports `json:"udp,omitempty"`
	ICMP bool   `json:"icmp,omitempty"`
	// Length is the length of the frame in bytes, with tags and without FCS; 0 = as long as its headers, at least 60.
	Length int `json:"length,omitempty"`
}

// Addresses are source and destination of a packet. The source may be missing.
type Addresses struct {
	Src netip.Addr `json:"src,omitzero"`
	Dst netip.Addr `json:"dst"`
}

// Ports are source and destination port. If the source is 0, one is chosen.
type Ports struct {
	Src uint16 `json:"src,omitempty"`
	Dst uint16 `json:"dst"`
}
