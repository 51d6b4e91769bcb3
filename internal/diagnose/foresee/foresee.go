package foresee

import (
	"context"
	"slices"

	"heddle/internal/abi"
	"heddle/internal/diagnose"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// broadcast is the destination of a sender whose destination is not known.
var broadcast = plan.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Compare says what the change from one plan to another would newly lose. Both hosts have the same ports but for the
// plan, the facts and what explains them. Where ctx ends early, what was not looked at is counted.
func Compare(ctx context.Context, now, after *trace.Host, seen Seen) *diagnose.Foreseen {
	before, then := trace.NewSession(now), trace.NewSession(now)
	then.Change(after)
	all := sendersOf(before, now, after.Plan, seen)
	out := &diagnose.Foreseen{Losses: []diagnose.Loss{}, Left: all.left, Counted: all.counted}
	c := &comparison{before: before, then: then, was: portsOf(now.Plan), will: portsOf(after.Plan),
		uplinks: uplinksOf(now.Plan), said: map[said]int{}}
	for i, s := range all.list {
		if i%64 == 0 && ctx.Err() != nil {
			out.Left += len(all.list) - i
			break
		}
		out.Looked++
		if l := c.loss(s, all.of[s]); l != nil {
			c.add(out, l)
		}
	}
	return out
}

// comparison compares what becomes of frames.
type comparison struct {
	before, then *trace.Session
	was, will    map[plan.PortID]*plan.Port
	uplinks      map[plan.PortID]bool
	said         map[said]int
}

// lost is a loss before it is explained.
type lost struct {
	diagnose.Loss
	at, to plan.PortID
	frame  []byte
	res    model.Result
}

// said identifies losses that are one for the reader: what a station loses for one reason.
type said struct {
	station
	src, to, reason string
}

// add adds a loss, or adds to one that says the same.
func (c *comparison) add(out *diagnose.Foreseen, l *lost) {
	k := said{station{l.at, l.VLAN, l.MAC}, l.Address.String(), l.To, l.res.Reason.String()}
	at, ok := c.said[k]
	switch {
	case ok && at < len(out.Losses):
		if have := &out.Losses[at]; !l.OfPort {
			have.Frames, have.Seconds = have.Frames+l.Frames, max(have.Seconds, l.Seconds)
		}
	case ok: // one of those that are not listed
	case len(out.Losses) == diagnose.MaxLosses:
		c.said[k] = diagnose.MaxLosses
		out.More++
	default:
		c.said[k] = len(out.Losses)
		l.Cause = c.cause(l.at, l.to, l.frame, &l.res)
		out.Losses = append(out.Losses, l.Loss)
	}
}

// loss is what is lost of a sender, nil for nothing.
func (c *comparison) loss(s sender, a amount) *lost {
	if c.will[s.at] == nil { // the change removes the port, and says so
		return nil
	}
	frame, err := s.frame(c.was[s.at], a)
	if err != nil {
		return nil
	}
	was, will := c.before.Send(s.at, frame), c.then.Send(s.at, frame)
	if !was.Delivered {
		return nil
	}
	var to plan.PortID
	if will.Delivered {
		var gone bool
		if to, gone = c.missing(s, was.Copies, will.Copies); !gone {
			return nil
		}
	}
	l := &lost{Loss: diagnose.Loss{Switch: s.at.Switch, Port: s.at.Name, MAC: s.mac, VLAN: s.vlan, Address: s.src,
		To: to.Name, Frames: a.frames, Seconds: a.during.Seconds(), OfPort: a.ofPort, Perhaps: a.perhaps},
		at: s.at, to: to, frame: frame, res: will}
	if p := c.was[s.at]; p != nil {
		l.PortGroup = p.PortGroup
	}
	return l
}

// missing finds who got a copy before and gets none now: the physical network, or the port that the frame is for.
func (c *comparison) missing(s sender, was, will []model.Copy) (plan.PortID, bool) {
	has := func(list []model.Copy, of func(plan.PortID) bool) (plan.PortID, bool) {
		for _, one := range list {
			if !one.HostStack && of(one.To) {
				return one.To, true
			}
		}
		return plan.PortID{}, false
	}
	uplink := func(id plan.PortID) bool { return c.was[id] == nil }
	if id, ok := has(was, uplink); ok {
		_, still := has(will, func(id plan.PortID) bool { return c.will[id] == nil })
		return id, !still
	}
	if s.to.IsZero() || s.to.IsGroup() || len(was) != 1 {
		return plan.PortID{}, false
	}
	id := was[0].To
	if was[0].HostStack || c.will[id] == nil {
		return plan.PortID{}, false
	}
	_, still := has(will, func(o plan.PortID) bool { return o == id })
	return id, !still
}

// cause is why a frame is dropped, or why that port or uplink gets no copy.
func (c *comparison) cause(at, to plan.PortID, frame []byte, res *model.Result) diagnose.Cause {
	of := to
	if c.uplinks[to] { // any of them: the team decides
		of = plan.PortID{}
	}
	list := c.then.Why(at, of, frame, res)
	i := slices.IndexFunc(list, func(one diagnose.Cause) bool {
		return to.Name != "" && (one.Port == to.Name || c.uplinks[to] && one.Reason == abi.ReasonNoUplink.String())
	})
	switch {
	case i >= 0:
		return list[i]
	case len(list) > 0:
		return list[0]
	}
	return diagnose.Cause{Reason: res.Reason.String(), Why: "nothing there takes the frame any more"}
}

func uplinksOf(p *plan.Plan) map[plan.PortID]bool {
	all := map[plan.PortID]bool{}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			all[u.ID] = true
		}
	}
	return all
}

// frame is one that the sender sends: with the tag that it has on the port's own device.
func (s sender) frame(p *plan.Port, a amount) ([]byte, error) {
	to := s.to
	if to.IsZero() {
		to = broadcast
	}
	f := &diagnose.Fields{SrcMAC: &s.mac, DstMAC: &to}
	if p != nil && p.Policy.VLAN.V.Mode == plan.VLANTrunk && s.vlan.ID > 0 {
		id := s.vlan.ID
		if s.vlan.Kind == plan.SegmentAD {
			f.Outer = &id
		} else {
			f.VLAN = &id
		}
	}
	if s.src.IsValid() && s.dst.IsValid() && s.src.Is4() == s.dst.Is4() {
		f.IP = &diagnose.Addresses{Src: s.src, Dst: s.dst}
		f.ICMP = true
		if a.frames > 0 {
			f.Length = int(min(a.bytes/a.frames, diagnose.MaxLength))
		}
		if f.Length < shortestIP {
			f.Length = 0
		}
	}
	return trace.FrameOf(f)
}

// shortestIP is the length, in bytes, from which on every packet of an echo request fits with two tags.
const shortestIP = 14 + 8 + 40 + 8
