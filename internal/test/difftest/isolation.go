package difftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"heddle/internal/model"
	"heddle/internal/plan"
)

// Isolation checks from the plan alone, knowing nothing of how a switch works, that no copy of a frame leaves its
// segment, reaches a blocked port or uplink, or uses an uplink that the sender may not use.
type Isolation struct {
	ports   map[plan.PortID]*plan.Port
	uplinks map[plan.PortID]*plan.Uplink
	plan    *plan.Plan
	facts   plan.Facts
}

// NewIsolation prepares the check of outcomes under a plan.
func NewIsolation(p *plan.Plan, f plan.Facts) *Isolation {
	g := &Isolation{ports: map[plan.PortID]*plan.Port{}, uplinks: map[plan.PortID]*plan.Uplink{}, plan: p, facts: f}
	for _, s := range p.Switches {
		for _, x := range s.Ports {
			g.ports[x.ID] = x
		}
		for _, x := range s.Uplinks {
			g.uplinks[x.ID] = x
		}
	}
	return g
}

// connected says whether frames can arrive at a port or uplink.
func (g *Isolation) connected(id plan.PortID) bool {
	_, ok := g.facts[id]
	return ok && (g.ports[id] != nil || g.uplinks[id] != nil)
}

// domain is a broadcast domain: protocol of the tag and VID, both 0 without a VLAN.
type domain struct{ protocol, vid uint16 }

// outerDomain is the domain that a frame's own outermost tag names.
func outerDomain(frame []byte) (d domain, tagged bool) {
	if len(frame) < 16 {
		return domain{}, false
	}
	p := binary.BigEndian.Uint16(frame[12:])
	if p != 0x8100 && p != 0x88a8 {
		return domain{}, false
	}
	if v := binary.BigEndian.Uint16(frame[14:]) % 4096; v != 0 {
		return domain{p, v}, true
	}
	return domain{}, true
}

// Check says what is wrong with where the copies of a frame went, "" when nothing is.
func (g *Isolation) Check(at plan.PortID, frame []byte, o Outcome) string {
	if len(o.Copies) == 0 {
		return ""
	}
	sent, _ := outerDomain(frame)
	from := g.ports[at]
	if from != nil && from.Policy.VLAN.V.Mode == plan.VLANAccess && sent == (domain{}) {
		sent = domain{0x8100, from.Policy.VLAN.V.ID}
	}
	for _, c := range o.Copies {
		if what := g.checkCopy(at, from, sent, c); what != "" {
			return fmt.Sprintf("copy of a frame from %s to %s: %s", at, copyName(c), what)
		}
	}
	return ""
}

func (g *Isolation) checkCopy(at plan.PortID, from *plan.Port, sent domain, c model.Copy) string {
	if c.HostStack {
		return g.checkHost(at, from, sent, c)
	}
	if c.To.Switch != at.Switch || c.To == at {
		return "another switch's, or the sender's own"
	}
	if !g.entered(at, from, sent) {
		return fmt.Sprintf("the sender is blocked, or may not send in %v", sent)
	}
	if to := g.ports[c.To]; to != nil {
		return g.checkPort(to, sent, c.Frame)
	}
	to := g.uplinks[c.To]
	if to == nil {
		return "no such receiver"
	}
	return g.checkUplink(from, to, sent, c.Frame)
}

// checkHost: the host's stack gets frames of its own uplink, and of ports by uplinks that carry its traffic, in their
// VLANs.
func (g *Isolation) checkHost(at plan.PortID, from *plan.Port, sent domain, c model.Copy) string {
	if from == nil {
		if c.To != at {
			return "the host's stack gets what comes from an uplink there only"
		}
		return ""
	}
	u, f := g.uplinks[c.To], g.facts[c.To]
	switch d, _ := outerDomain(c.Frame); {
	case u == nil || c.To.Switch != at.Switch || !f.HostTraffic || !f.Up || u.Blocked:
		return "the host is not on this switch there"
	case !g.entered(at, from, sent):
		return fmt.Sprintf("the sender is blocked, or may not send in %v", sent)
	case !u.VLANs.Has(sent.vid) || d != sent:
		return fmt.Sprintf("the host got a frame of %v in %v there", sent, d)
	case c.Frame[0]&1 == 0 && plan.MAC(c.Frame[:6]) != f.DeviceMAC:
		return "it is for somebody else"
	}
	return ""
}

// CheckFromHost is Check for a frame of the host's own that is about to leave by an uplink.
func (g *Isolation) CheckFromHost(at plan.PortID, frame []byte, o Outcome) string {
	sent, _ := outerDomain(frame)
	u, f := g.uplinks[at], g.facts[at]
	for _, c := range o.Copies {
		what := ""
		switch to := g.ports[c.To]; {
		case c.HostStack:
			what = "it is the host's own"
		case c.To == at:
			if !bytes.Equal(c.Frame, frame) {
				what = "it does not leave as it came"
			}
		case to == nil || c.To.Switch != at.Switch:
			what = "another uplink, or another switch's"
		case !f.HostTraffic || !f.Up || u.Blocked || !u.VLANs.Has(sent.vid) || plan.MAC(frame[6:12]) != f.DeviceMAC:
			what = "the host is not in this segment there"
		default:
			what = g.checkPort(to, sent, c.Frame)
		}
		if what != "" {
			return fmt.Sprintf("copy of a frame of the host's, leaving by %s, for %s: %s", at, copyName(c), what)
		}
	}
	return ""
}

// entered says whether a frame of a domain may come into the switch there.
func (g *Isolation) entered(at plan.PortID, from *plan.Port, sent domain) bool {
	if from != nil {
		return !from.Policy.Blocked.V && g.facts[at].LoopBlocked == nil && member(from.Policy.VLAN.V, sent)
	}
	u := g.uplinks[at]
	return u != nil && !u.Blocked && u.VLANs.Has(sent.vid)
}

// member says whether a port with this VLAN policy is in the domain.
func member(v plan.VLAN, d domain) bool {
	if v.Mode == plan.VLANNone {
		return d == domain{}
	}
	if v.Mode == plan.VLANAccess {
		return d == domain{0x8100, v.ID}
	}
	protocol := map[bool]uint16{false: 0x8100, true: 0x88a8}[v.AD]
	return v.Set.Has(d.vid) && (d.vid == 0 || d.protocol == protocol)
}

func (g *Isolation) checkPort(to *plan.Port, sent domain, frame []byte) string {
	if to.Policy.Blocked.V || g.facts[to.ID].LoopBlocked != nil {
		return "it is blocked"
	}
	if !member(to.Policy.VLAN.V, sent) {
		return fmt.Sprintf("it is not in %v", sent)
	}
	if d, _ := outerDomain(frame); to.Policy.VLAN.V.Mode == plan.VLANTrunk && d != sent {
		return fmt.Sprintf("a trunk got it in %v instead of %v", d, sent)
	}
	return ""
}

func (g *Isolation) checkUplink(from *plan.Port, to *plan.Uplink, sent domain, frame []byte) string {
	if from == nil {
		return "from uplink to uplink"
	}
	if to.Blocked {
		return "it is blocked"
	}
	entry := to.ID.Name
	if lag := g.plan.Switch(to.ID.Switch).LAGOf(entry); lag != nil {
		entry = lag.Name
	}
	if t := from.Policy.Teaming; !slices.Contains(t.Active.V, entry) && !slices.Contains(t.Standby.V, entry) {
		return "the sender's team does not have this uplink"
	}
	if f := g.facts[to.ID]; !f.Up || f.Out != nil {
		return "the uplink is down, or out of use"
	}
	if !to.VLANs.Has(sent.vid) {
		return fmt.Sprintf("it does not carry %v", sent)
	}
	if d, _ := outerDomain(frame); d != sent {
		return fmt.Sprintf("it left in %v instead of %v", d, sent)
	}
	return ""
}
