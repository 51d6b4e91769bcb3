package advise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/plan"
)

func vlanRules() []Rule {
	return []Rule{{"wrong-vlan", api.FindingNote, "a guest asks in its VLAN and nobody answers",
		"frames that a port sent, and frames for it: none at all, or no unicast frame after 20 and more broadcasts, " +
			"while ports of other VLANs or uplinks of the switch pass frames",
		"the guest reaches nobody: its port is in another VLAN than those it asks for, or the physical switches do " +
			"not carry the VLAN",
		"Put the port into a port group of the right VLAN, or have the physical switches carry this " +
			"one.",
		wrongVLAN}}
}

// How many frames a port must have sent before missing answers are a sign: a guest that starts sends some frames that
// nobody must answer. If other ports of the VLAN receive frames, only frames that usually get an answer count.
const (
	unansweredFrames     = 10
	unansweredBroadcasts = 20
)

// wrongVLAN finds ports whose guests send and get no answer. It is not known here which VLAN would be right, but it can
// be seen that no station of this VLAN answers the guest.
func wrongVLAN(l *look) (found []api.Finding) {
	l.eachPort(func(sw *plan.Switch, p *plan.Port, c *counts) {
		if c.unicast() > 0 || !l.up(p.ID) || p.Policy.Blocked.V || l.accepted(c) < unansweredFrames {
			return
		}
		carrying, ok := l.carrying(sw, p)
		if !ok {
			return // the rules uplink-vlan and no-uplink are about that
		}
		var brought, forNobody uint64
		for _, u := range carrying {
			uc := l.of(u.ID)
			brought += uc.in()
			forNobody += uc.dropped(abi.ReasonNoReceiver) + uc.dropped(abi.ReasonUnknownUnicast)
		}
		peer := l.busiestElsewhere(sw, p)
		if brought == 0 && peer == nil {
			return // no station receives anything: that shows nothing about this VLAN
		}
		f, ok := l.unanswered(sw, p, c)
		if !ok {
			return
		}
		if brought > 0 {
			f.Sign += fmt.Sprintf("; its uplinks (%s) brought %s", uplinkNames(carrying), frames(brought))
		}
		f.Sign += l.nativeVLAN(p, carrying) + l.whereNotNamed(p, carrying)
		f.Change = "If it is the wrong VLAN, put the port into a port group of the right one; the command shows what " +
			"keeps it from a port of another VLAN. If it is the right one, the ports of the physical switches have " +
			"to carry it."
		switch {
		case forNobody > 0:
			f.Sign += fmt.Sprintf(", %d of them for VLANs or addresses that no port here has", forNobody)
			f.Change = "If it is the wrong VLAN, put the port into a port group of the right one; the command shows " +
				"the VLANs of frames that nobody here takes. If it is the right one, the ports of the physical " +
				"switches have to carry it."
			f.Command = l.command(l.mostForNobody(carrying).ID, "capture", "--stage", "drop", "--count", "10")
		case peer != nil:
			f.Command = l.command(p.ID, "trace", peer.ID.Name)
		default:
			f.Command = l.command(carrying[0].ID, "capture", "--count", "10")
		}
		found = append(found, f)
	})
	return found
}

// unanswered returns the finding about a port that received no unicast frame, if it received no other frame either or
// has sent requests often; false otherwise.
func (l *look) unanswered(sw *plan.Switch, p *plan.Port, c *counts) (f api.Finding, is bool) {
	vlan := p.Policy.VLAN.V
	if c.out() == 0 {
		with := "no other port is in its VLAN"
		if n := l.sharing(sw, p); n > 0 {
			with = "it shares its VLAN with " + many(n, "other port")
		}
		return onPort(p, "it sent %s (%s) %s and got none; %s", frames(l.accepted(c)), vlan, l.period(p.ID), with), true
	}
	asked := c.named["packetsInBroadcast"]
	if asked < unansweredBroadcasts {
		return f, false
	}
	return onPort(p, "it sent %s (%s) %s, and not one unicast frame came for it, while %s to all did",
		many(asked, "broadcast frame"), vlan, l.period(p.ID), frames(c.out())), true
}

// accepted returns how many frames of a port the switch admitted, including those without a receiver.
func (l *look) accepted(c *counts) uint64 {
	refused := uint64(0)
	for reason, n := range c.drops {
		if reason != abi.ReasonNoReceiver.String() && reason != abi.ReasonUnknownUnicast.String() {
			refused += n
		}
	}
	return diff(c.in(), refused)
}

// carrying returns the uplinks of a port's team that can be used and carry its VLAN; false if its team has uplinks but
// none of them can.
func (l *look) carrying(sw *plan.Switch, p *plan.Port) (list []*plan.Uplink, ok bool) {
	if len(sw.Uplinks) == 0 {
		return nil, true
	}
	vlans := vlansOf(&p.Policy.VLAN.V)
	team := &p.Policy.Teaming
	for _, k := range links(sw, slices.Concat(team.Active.V, team.Standby.V)) {
		for _, u := range k.members {
			if u.Usable(l.Host.Facts[u.ID]) && overlap(&u.VLANs, &vlans) {
				list = append(list, u)
			}
		}
	}
	return list, len(list) > 0
}

// sharing returns how many other connected ports of the switch share a VLAN with the port.
func (l *look) sharing(sw *plan.Switch, p *plan.Port) (n uint64) {
	for _, q := range sw.Ports {
		if q != p && l.connected(q.ID) && sharesVLAN(&p.Policy.VLAN.V, &q.Policy.VLAN.V) {
			n++
		}
	}
	return n
}

// busiestElsewhere returns the port of the switch that shares no VLAN with the port and has passed the most frames, nil
// for none.
func (l *look) busiestElsewhere(sw *plan.Switch, p *plan.Port) (best *plan.Port) {
	most := uint64(0)
	for _, q := range sw.Ports {
		if q == p || !l.connected(q.ID) || sharesVLAN(&p.Policy.VLAN.V, &q.Policy.VLAN.V) {
			continue
		}
		c := l.of(q.ID)
		if n := c.out() + l.accepted(c); n > most {
			best, most = q, n
		}
	}
	return best
}

// nativeVLAN returns a hint about a neighbour's untagged frames, if it concerns the port: the neighbour sends untagged
// frames, or its untagged VLAN is the port's VLAN.
func (l *look) nativeVLAN(p *plan.Port, carrying []*plan.Uplink) string {
	vlans := vlansOf(&p.Policy.VLAN.V)
	for _, u := range carrying {
		v := l.uplink[u.ID]
		if v == nil || v.LLDP == nil {
			continue
		}
		for i := range v.LLDP.Neighbours {
			switch n := &v.LLDP.Neighbours[i]; {
			case n.PVID == 0:
			case vlans.Has(0):
				return fmt.Sprintf("; %s takes untagged frames of %s as VLAN %d (LLDP)", name(n), u.ID.Name, n.PVID)
			case vlans.Has(n.PVID):
				return fmt.Sprintf("; %s has VLAN %d untagged on %s (LLDP), and it is sent with a tag here", name(n),
					n.PVID, u.ID.Name)
			}
		}
	}
	return ""
}

// mostForNobody returns the uplink that received the most frames without a receiver.
func (l *look) mostForNobody(list []*plan.Uplink) *plan.Uplink {
	return slices.MaxFunc(list, func(a, b *plan.Uplink) int {
		n := func(u *plan.Uplink) uint64 {
			c := l.of(u.ID)
			return c.dropped(abi.ReasonNoReceiver) + c.dropped(abi.ReasonUnknownUnicast)
		}
		return cmp.Compare(n(a), n(b))
	})
}

func uplinkNames(list []*plan.Uplink) string {
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = u.ID.Name
	}
	return strings.Join(names, ", ")
}
