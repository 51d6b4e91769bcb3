package model

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// This file handles the host's own traffic on uplinks whose devices have addresses of the host (frame-rules, "The
// host's own traffic").

// carriesHost reports whether the host is a member of the segments that the uplink carries.
func (sw *vswitch) carriesHost(u *uplink) bool {
	if !u.connected || !u.fact.HostTraffic || !u.fact.Up || u.Blocked || u.fact.DeviceMAC.IsZero() {
		return false
	}
	return sw.owner[u.fact.DeviceMAC] == nil // otherwise a host interface has taken over the address, and its traffic
}

// hostBehind is the uplink whose host owns the destination of a port's frame; of several uplinks with one MAC the first
// counts.
func (r *run) hostBehind() *uplink {
	if r.from == nil || r.sw.owner[r.head.dst] != nil || r.head.dst.IsZero() {
		return nil
	}
	for _, u := range r.sw.uplinks {
		if u.connected && u.fact.DeviceMAC == r.head.dst {
			if u.hosts && u.VLANs.Has(r.seg.VLAN) {
				return u
			}
			return nil
		}
	}
	return nil
}

// hostsConsidered lists the uplinks behind which the host gets a copy of a port's frame.
func (r *run) hostsConsidered() (list []*uplink) {
	switch {
	case r.from == nil:
		return nil
	case r.target == hostBehind:
		return []*uplink{r.behind}
	case r.target != group:
		return nil
	}
	for _, u := range r.sw.uplinks {
		if u.hosts && u.VLANs.Has(r.seg.VLAN) {
			list = append(list, u)
		}
	}
	return list
}

// FromHost hands the switch a frame of the host's own stack that is about to leave by an uplink. If the frame leaves,
// the copy for the uplink is the frame itself, in the bytes in which it came.
func (h *Host) FromHost(at plan.PortID, frame []byte, now time.Duration) Result {
	pl := h.places[at]
	if pl.uplink == nil || !pl.uplink.connected {
		return Result{}
	}
	r := &h.run
	*r = run{h: h, sw: pl.sw, out: pl.uplink, now: now, room: r.room}
	whole := r.read(frame)
	if !whole || !r.entersFromHost() || h.rules.fromHost(r) {
		r.res.Copies = append(r.res.Copies, Copy{To: at, Frame: append([]byte(nil), frame...)})
		r.sayLeaves()
	}
	if r.res.Delivered = len(r.res.Copies) > 0; !r.res.Delivered {
		r.res.Reason = r.disposition()
	}
	r.meter()
	return r.res
}

// entersFromHost reports whether the frame is looked up at all, and finds its segment; otherwise the frame leaves
// unchanged.
func (r *run) entersFromHost() bool {
	u, f := r.out, &r.head
	if !u.hosts || f.src != u.fact.DeviceMAC || linkLocal(f.dst) {
		return false
	}
	if tooLong(r) != abi.ReasonNone || !u.VLANs.Has(f.vid()) {
		return false
	}
	r.seg = segmentOf(f.vid(), f.ad)
	return true
}

// fromHost makes the copies for ports, and says whether the frame leaves too: it does not when a port here is its known
// receiver.
func fromHost(r *run) (leaves bool) {
	t := r.out.tally
	t.fromHost++
	r.sw.mark(station{r.seg, r.head.src}, r.now) // S91: it may come back by another uplink
	r.h.rules.lookUp(r)                          // the host never sends a frame to itself
	r.sayTarget()
	for _, p := range r.portsConsidered() {
		r.toPort(p)
	}
	switch {
	case r.target != known:
		return true
	case len(r.res.Copies) > 0:
		t.fromHostKept++
	default:
		t.fromHostDropped++
	}
	return false
}

func (r *run) sayLeaves() {
	if r.h.explain {
		r.say(StageDeliver, "it leaves by uplink %s as it came", r.out.ID)
	}
}
