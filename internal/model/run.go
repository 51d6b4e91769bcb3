package model

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// run is one frame on its way through one switch.
type run struct {
	h    *Host
	sw   *vswitch
	now  time.Duration
	head header
	from *port   // the port it came from: either this
	via  *uplink // or this
	host hostCopy
	vni  uint32 // of a frame from a tunnel

	seg           Segment // known after classify
	target        target  // known after lookUp
	known         *port
	behind        *uplink // the known receiver is the host behind this uplink
	keptFromPorts bool    // by storm control
	out           *uplink // instead of from and via: the uplink by which one of the host's own frames is about to leave

	taggedForm, plainForm []byte
	room                  []*port // memory that is reused from frame to frame
	res                   Result
}

// hostCopy says what the host's own stack gets of a frame from an uplink (S96).
type hostCopy uint8

const (
	hostNothing   hostCopy = iota
	hostToo                // a copy, whatever the switch does
	hostOtherwise          // the frame, if the switch drops it before the look-up
	hostOnly               // the frame; the switch does not process it
)

// Frame hands a frame to the switch at a port or uplink, in the bytes it has on the wire without FCS. The bytes are
// neither stored nor changed. A port without a device gets no frames: the result is empty, and nothing is counted.
func (h *Host) Frame(at plan.PortID, frame []byte, now time.Duration) Result {
	return h.frame(at, 0, frame, now)
}

// frame is Frame, in a VNI if the frame comes from a tunnel.
func (h *Host) frame(at plan.PortID, vni uint32, frame []byte, now time.Duration) Result {
	pl, ok := h.places[at]
	if !ok || (pl.port != nil && !pl.port.connected) || (pl.uplink != nil && !pl.uplink.connected) {
		return Result{}
	}
	r := &h.run
	*r = run{h: h, sw: pl.sw, from: pl.port, via: pl.uplink, vni: vni, now: now, room: r.room}
	whole := r.read(frame)
	if r.from != nil {
		r.sw.wake(r.from) // S99
	}
	t, number := r.arrival(), r.numbered(r.via, r.head.tags > 0)+r.numberedAt(r.from)
	t.in(r.head.class, len(frame)+number)
	r.res.Reason = abi.ReasonMalformed
	if whole && !(number > 0 && len(frame) < ethernetHeader+2) { // with a tag it would end within that
		r.res.Reason = r.pass()
	}
	r.sayFate()
	if r.res.Reason != abi.ReasonNone {
		t.drop(r.res.Reason)
		return r.res
	}
	r.res.Delivered = true
	t.delivered++
	r.meter()
	res := r.res
	if left := res.Left; left != nil && left.Answer != nil { // it comes back as a frame of the tunnel
		back := h.FrameFrom(r.from.ID.Switch, r.from.VNI, left.Answer, now)
		res.Back = &back
	}
	return res
}

// read parses the frame; false for a malformed one, whose layers 3 and 4 are not read.
func (r *run) read(frame []byte) (whole bool) {
	if r.head, whole = read(frame); whole {
		r.head.packet = r.h.rules.packet(frame)
	}
	return whole
}

// arrival is the tally of where the frame came in.
func (r *run) arrival() *tally {
	if r.via != nil {
		return r.via.tally
	}
	return r.from.tally
}

// pass takes the frame through the stages and returns its disposition (S94).
func (r *run) pass() abi.Reason {
	reason := r.enter()
	if reason != abi.ReasonNone {
		if r.host == hostNothing {
			return reason
		}
		r.sayHostAnyway(reason)
		r.host = hostOnly // S96: dropped by the switch, but delivered to the host
	}
	if r.host != hostOnly {
		if reason := r.locate(); reason != abi.ReasonNone {
			return reason
		}
	}
	if r.host == hostOnly || r.host == hostToo {
		r.toHost()
	}
	if r.host == hostOnly && linkLocal(r.head.dst) {
		r.h.rules.passControl(r)
	}
	if r.host != hostOnly {
		r.deliver()
	}
	return r.disposition()
}

// enter is admission and classification: the part whose drops do not affect the copy for the host's stack.
func (r *run) enter() abi.Reason {
	if reason := r.h.rules.admit(r); reason != abi.ReasonNone || r.host == hostOnly {
		return reason
	}
	return r.h.rules.classify(r)
}

// locate is learning and looking up.
func (r *run) locate() abi.Reason {
	r.res.Segment, r.res.Placed = r.seg, true
	r.saySegment()
	if reason := r.h.rules.learn(r); reason != abi.ReasonNone {
		return reason
	}
	r.sayChanges()
	reason := r.h.rules.lookUp(r)
	r.sayTarget()
	if reason != abi.ReasonNone {
		return reason
	}
	return r.h.rules.stormControl(r)
}

// deliver makes a copy for every receiver whose rules allow it.
func (r *run) deliver() {
	ports, up, noUplink := r.h.rules.receivers(r)
	if r.keptFromPorts {
		ports = nil
		r.from.tally.notFlooded++
		r.refuse(plan.PortID{}, nil, abi.ReasonStormControl)
	}
	copies := len(r.res.Copies)
	if p := r.leftBehind(); p != nil {
		r.refuse(p.ID, p.tally, abi.ReasonGuestElsewhere)
	}
	for _, p := range ports {
		r.toPort(p)
	}
	if r.head.class == unicast && r.target == unknown && len(r.res.Copies) > copies {
		r.arrival().flooded++
	}
	for _, u := range r.hostsConsidered() {
		r.toHostBehind(u)
	}
	if up != nil {
		r.toUplink(up)
	}
	if noUplink {
		r.refuse(plan.PortID{}, nil, abi.ReasonNoUplink)
	}
}
