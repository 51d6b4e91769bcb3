package trace

import (
	"fmt"
	"strconv"

	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/plan"
)

// elsewhere explains that the requested port is not in the frame's segment.
func (s *subject) elsewhere(to *place) diagnose.Cause {
	p, seg := to.port, s.res.Segment
	if seg.VNI != p.VNI {
		return s.outside(p, seg)
	}
	v := &p.Policy.VLAN
	c := diagnose.Cause{Reason: otherSegment, Why: fmt.Sprintf("the frame is in %s, and the port is %s, %s", seg, v.V,
		whoSet(p, v.From)),
		Change: "Put the two into one VLAN, if they are meant to talk without a router."}
	set, flags := inSegment(seg)
	s.fix(&c, p, remedy{policy: "vlan", level: v.From, set: set, flags: flags})
	if v.From != plan.FromPort && s.moveTo(&c, p, func(e *plan.Effective) bool { return admits(&e.VLAN.V, seg) }) {
		c.Change = "Put the port into a port group of that VLAN, if the two are meant to talk without a router."
	}
	return c
}

// outside explains that the requested port is in another overlay segment than the frame, or that only one of the two is
// in one.
func (s *subject) outside(p *plan.Port, seg model.Segment) diagnose.Cause {
	where, value := "in no overlay segment", "none"
	if p.VNI != 0 {
		where, value = fmt.Sprintf("in VNI %d", p.VNI), strconv.FormatUint(uint64(p.VNI), 10)
	}
	group := "port group " + p.PortGroup
	c := diagnose.Cause{Reason: otherSegment, Policy: "overlay.vni", Value: value, From: group,
		Why: fmt.Sprintf("the frame is in %s, and the port is %s, as set by the %s", seg, where, group),
		Change: "Put the two into one segment, if they are meant to talk without a router: their port groups need " +
			"the same VNI.", Command: s.command(p.ID, "port show")}
	if s.moveInto(&c, p, seg.VNI, func(e *plan.Effective) bool { return admits(&e.VLAN.V, seg) }) {
		c.Change = "Put the port into a port group of that segment, if the two are meant to talk without a router."
	}
	return c
}

// whoSet returns who set a value of a port.
func whoSet(p *plan.Port, l plan.Level) string {
	if l == plan.FromBuiltIn {
		return "the built-in default"
	}
	return fmt.Sprintf("as set by the %s", p.Origin(l))
}

// inSegment returns the VLAN policy of a port that is in a segment.
func inSegment(seg model.Segment) (set, flags string) {
	switch {
	case seg.VLAN == 0:
		return "vlan: {none: true}", "--vlan none"
	case seg.AD:
		return fmt.Sprintf(`vlan: {trunk: ["%d"], outer: 802.1ad}`, seg.VLAN),
			fmt.Sprintf("--trunk %d --qinq", seg.VLAN)
	}
	return fmt.Sprintf("vlan: {access: %d}", seg.VLAN), fmt.Sprintf("--vlan %d", seg.VLAN)
}

// admits reports whether a port with a VLAN policy, for frames that it sees untagged if it can, is in a segment.
func admits(v *plan.VLAN, seg model.Segment) bool {
	switch v.Mode {
	case plan.VLANAccess:
		return !seg.AD && seg.VLAN == v.ID
	case plan.VLANTrunk:
		return seg.AD && v.AD && v.Set.Has(seg.VLAN)
	}
	return seg.VLAN == 0
}

// notThatUplink explains that the frame leaves by another uplink, or not at all.
func (s *subject) notThatUplink(to *place) *diagnose.Cause {
	c := &diagnose.Cause{Reason: otherUplink, Policy: "none: where the frame is from and for", From: "the switch",
		Change: "Nothing: this is how a switch forwards.", Command: s.command(to.id, "uplink show")}
	if s.from.uplink != nil {
		c.Why = "what comes in by an uplink leaves by none"
		return c
	}
	for _, x := range s.res.Copies {
		if other := s.places[x.To]; other.uplink != nil && !x.HostStack {
			c.Why = fmt.Sprintf("the teaming of port %s sends it by %s", s.from.id.Name, other.id.Name)
			c.Change = "Nothing, if the two uplinks lead to one network; else name the uplink alone in the teaming."
			s.set(c, s.from.port, "teaming.active", to.id.Name)
			return c
		}
	}
	if len(s.res.Refused) > 0 && !s.res.Delivered {
		return nil
	}
	c.Why = "the destination is on this host"
	return c
}
