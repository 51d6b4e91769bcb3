package advise

import (
	"fmt"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func securityRules() []Rule {
	return []Rule{
		{"promiscuous", api.FindingNote, "a port is promiscuous where MAC learning would do",
			"unicast frames delivered to a port that sends itself, against those meant for other ports of its VLANs",
			"the guest gets every frame of its VLANs, reads what is not its own, and the host copies it all",
			"Set promiscuous: reject, and macLearning with forgedTransmits: accept for a guest that has " +
				"several addresses behind it.",
			promiscuous},
		{"forged-transmits", api.FindingWrong, "a port sends from other addresses than its own, and may not",
			"frames dropped as `forged-transmit`", "what the guest sends from other addresses is lost: it is a " +
				"hypervisor, a bridge, a router, or hostile",
			"Set forgedTransmits: accept for a hypervisor, bridge or router; else find out who in " +
				"the guest sends from other addresses.",
			forged},
		{"guest-tags", api.FindingWrong, "a guest's VLAN tags are not those its port passes",
			"frames dropped as `guest-tagged` or `vlan-not-allowed`",
			"the guest and its port disagree about who sets the VLAN, and the frames are lost",
			"Give the port a trunk with the guest's VLANs, or stop the guest from tagging.",
			guestTags},
		{"guest-bpdu", api.FindingNote, "a guest takes part in spanning tree", "frames dropped as `guest-bpdu`",
			"a bridge in the guest may close a loop; without the guard the physical switch may close the host's uplink",
			"Leave it, or open the bridge in the guest; an appliance that must take part gets bpdu " +
				"in guestLinkControl.",
			guestBPDU},
		{"guest-link-control", api.FindingNote, "a guest speaks a protocol of the link to the physical switch",
			"frames dropped as `guest-link-control`",
			"an appliance or a lab in the guest does not work; or the guest tries to take over the host's LAG, " +
				"discovery or flow control",
			"Add the protocol to guestLinkControl where an appliance or a lab needs it; else leave " +
				"it.",
			guestLinkControl},
		{"blocked-sender", api.FindingNote, "a blocked port goes on sending", "frames dropped as `port-blocked`",
			"somebody behind the port expects it to work",
			"Unblock the port, or stop the guest.",
			blockedSender},
	}
}

// worthTelling is how many useless copies, and which share of all in percent, make a promiscuous port a finding.
const (
	wastedCopies  = 10
	wastedPercent = 10
)

func promiscuous(l *look) (found []api.Finding) {
	l.eachPort(func(sw *plan.Switch, p *plan.Port, c *counts) {
		e := p.Policy
		if !e.Promiscuous.V || l.Host.Facts[p.ID].Promiscuous == plan.AsksNo || c.named["packetsInUnicast"] == 0 {
			return // a port that never sends unicast only monitors, and MAC learning does not help it
		}
		wasted := l.meantForOthers(sw, p, c)
		share := percent(wasted, c.unicast())
		if wasted < wastedCopies || share < wastedPercent {
			return
		}
		f := onPort(p, "%s it got %s and sent %s; about %d%% of those it got were for other ports", l.period(p.ID),
			many(c.unicast(), "unicast frame"), frames(c.in()), share)
		to := []plan.Setting{{Path: "security.promiscuous", Value: string(spec.Reject)}}
		change := "Have it get its own frames alone."
		if !e.Learning.Enabled.V {
			to = append(to, plan.Setting{Path: "security.macLearning.enabled", Value: "true"})
			change = "Have the port learn the addresses behind it, and get their frames alone."
		}
		found = append(found, remedy(f, l.explain.Fix(p, change, to...)))
	})
	return found
}

// meantForOthers returns about how many of the unicast frames that a promiscuous port received were for ports that
// receive only their own: all that those ports received, except for what the port itself sent.
func (l *look) meantForOthers(sw *plan.Switch, p *plan.Port, c *counts) uint64 {
	var others uint64
	for _, q := range sw.Ports {
		e := q.Policy
		if q != p && l.connected(q.ID) && !e.Promiscuous.V && !(e.Learning.Enabled.V && e.Learning.UnicastFlooding.V) &&
			sharesVLAN(&p.Policy.VLAN.V, &e.VLAN.V) {
			others += l.of(q.ID).unicast()
		}
	}
	return min(diff(others, c.named["packetsInUnicast"]), c.unicast())
}

// vlansOf returns the VLANs of a port; 0 is the untagged one.
func vlansOf(v *plan.VLAN) plan.VLANSet {
	var s plan.VLANSet
	switch v.Mode {
	case plan.VLANAccess:
		s.AddRange(v.ID, v.ID)
	case plan.VLANTrunk:
		return v.Set
	default:
		s.AddRange(0, 0)
	}
	return s
}

func sharesVLAN(a, b *plan.VLAN) bool {
	x, y := vlansOf(a), vlansOf(b)
	for i := range x {
		if x[i]&y[i] != 0 {
			return a.AD == b.AD
		}
	}
	return false
}

func forged(l *look) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		n := c.dropped(abi.ReasonForgedTransmit)
		if n == 0 {
			return
		}
		last := l.lastSource(p.ID)
		cause, _ := l.explain.Explain(p.ID, abi.ReasonForgedTransmit, trace.Known{Source: last})
		f := onPort(p, "%s from addresses that are not the port's %s dropped %s", frames(n), were(n),
			l.period(p.ID, dropsOf(abi.ReasonForgedTransmit)))
		f = l.dated(f, p.ID, dropsOf(abi.ReasonForgedTransmit))
		if !last.IsZero() {
			f.Sign += ", one of them " + last.String()
		}
		if p.Policy.AddressGuard.Enabled.V {
			f.Sign += "; whether their IP addresses are listed at the port does not matter"
		}
		found = append(found, remedy(f, cause))
	})
	return found
}

// lastSource returns the source address in the last reported violation of a port.
func (l *look) lastSource(id plan.PortID) (mac plan.MAC) {
	for i := len(l.Events) - 1; i >= 0; i-- {
		if e := &l.Events[i]; e.Kind == event.Violation && e.Switch == id.Switch && e.Port == id.Name && e.MAC != "" {
			mac, _ = plan.ParseMAC(e.MAC)
			return mac
		}
	}
	return mac
}

func guestTags(l *look) (found []api.Finding) {
	l.eachPort(func(_ *plan.Switch, p *plan.Port, c *counts) {
		for _, why := range []abi.Reason{abi.ReasonGuestTagged, abi.ReasonVLANNotAllowed} {
			n := c.dropped(why)
			if n == 0 {
				continue
			}
			f := onPort(p, "%s with a tag that the port (%s) does not pass %s dropped %s", frames(n), p.Policy.VLAN.V,
				were(n), l.period(p.ID, dropsOf(why)))
			f.Change = "Have the guest send untagged frames, or make the port a trunk of the VLANs that it tags; the " +
				"command shows which those are."
			if why == abi.ReasonVLANNotAllowed {
				f.Sign = fmt.Sprintf("%s of VLANs that the port (%s) does not carry %s dropped %s", frames(n),
					p.Policy.VLAN.V, were(n), l.period(p.ID, dropsOf(why)))
				f.Change = "Add the VLAN to the trunk, or correct it in the guest; the command shows which it is."
			}
			f.Command = l.command(p.ID, "capture", "--stage", "drop", "--reason", why.String(), "--count", "10")
			found = append(found, l.dated(f, p.ID, dropsOf(why)))
		}
	})
	return found
}

func guestBPDU(l *look) []api.Finding {
	return l.refusals(abi.ReasonGuestBPDU, "%s of spanning tree %s dropped %s", func(*plan.Port) trace.Known {
		return trace.Known{}
	})
}

func guestLinkControl(l *look) []api.Finding {
	return l.refusals(abi.ReasonGuestLinkControl, "%s of link control %s dropped %s", func(*plan.Port) trace.Known {
		return trace.Known{}
	})
}

func blockedSender(l *look) []api.Finding {
	return l.refusals(abi.ReasonPortBlocked, "%s that the port sent %s dropped %s, because it is blocked",
		func(*plan.Port) trace.Known { return trace.Known{} })
}
