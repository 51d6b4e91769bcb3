package model

import (
	"heddle/internal/abi"
	"heddle/internal/plan"
)

// target is the result of looking up a destination.
type target uint8

const (
	unknown target = iota
	known
	group
	hostAlone  // an uplink device's own MAC, on the uplink itself
	hostBehind // an uplink device's own MAC, in a frame from a port here
	outside    // known behind an endpoint of another host (S190)
)

// lookUp finds out where the destination is (frame-rules §4).
func lookUp(r *run) abi.Reason {
	if r.head.class != unicast {
		r.target = group
		return abi.ReasonNone
	}
	if p := r.sw.receiverOf(r.head.dst, r.seg); p != nil && p.admits(r.seg) { // S99: not a waiting one
		r.target, r.known = known, p
	} else if r.via != nil && !r.head.dst.IsZero() && r.head.dst == r.via.fact.DeviceMAC { // S96
		r.target, r.host = hostAlone, hostOnly
	} else if u := r.hostBehind(); u != nil {
		r.target, r.behind = hostBehind, u
	} else if p := r.learnedOn(); p != nil {
		r.target, r.known = known, p
	} else if isOutside(r) {
		r.target = outside
	}
	if r.known != nil && r.known == r.from {
		return abi.ReasonOwnDestination
	}
	return abi.ReasonNone
}

// receiverOf is the port to which frames for a MAC go in a segment; nil when nobody owns it. With siblings, it is the
// one that sent from the MAC last or, if that one cannot receive frames, another sibling (S111).
func (sw *vswitch) receiverOf(mac plan.MAC, seg Segment) *port {
	o := sw.ownerOf(mac)
	if o == nil {
		return nil
	}
	var choices []*port
	if s := sw.speaks[o.ID.Name]; s.mac == mac && s.port != "" {
		choices = append(choices, sw.named[s.port])
	}
	choices = append(choices, sw.owner[mac]...)
	for _, p := range choices {
		if p.connected && p.fact.Up && p.siblingOf(o) && !sw.waits(p) && p.admits(seg) {
			return p
		}
	}
	return o
}

// learnedOn is the port on which the destination was learned, if its guest runs here (S99).
func (r *run) learnedOn() *port {
	e := r.learnedEntry()
	if e == nil || r.sw.waits(e.port) {
		return nil
	}
	return e.port
}

// learnedEntry is the entry of the destination, while it is valid (S12, S17, S93, D5).
func (r *run) learnedEntry() *entry {
	e := r.sw.learned[station{r.seg, r.head.dst}]
	if e == nil || e.expired(r.now) || !e.port.connected || !e.port.learns() || !e.port.admits(r.seg) {
		return nil
	}
	return e
}
