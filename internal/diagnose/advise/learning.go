package advise

import (
	"strings"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func learningRules() []Rule {
	return []Rule{
		{"learning-forged", api.FindingNote, "MAC learning without forged transmits",
			"the policies of ports that learn: `forgedTransmits: reject`",
			"nothing is ever learned: the first frame from an address behind the port is dropped as `forged-transmit`",
			"Set forgedTransmits: accept where MAC learning is on: behind such a port are several " +
				"addresses.",
			learningForged},
		{"learning-promiscuous", api.FindingNote, "MAC learning beside promiscuous mode",
			"the policies of ports that learn: `promiscuous: accept`, and no guest is known not to ask for it",
			"the guest gets every frame of its VLANs although it needs those of its own addresses alone",
			"Set promiscuous: reject where MAC learning is on: learning gives the guest what it " +
				"needs.",
			learningPromiscuous},
		{"promiscuous-uplinks", api.FindingNote, "promiscuous mode on several uplinks, and the check that keeps out " +
			"doubles is off",
			"`checks: {reversePathPromiscuous: false}`, promiscuous ports, and uplinks that can be used " +
				"and share VLANs",
			"what the physical network floods comes by every uplink, and a promiscuous port gets it as often",
			"Set checks.reversePathPromiscuous to true, or use MAC learning instead.",
			promiscuousUplinks},
	}
}

// eachGroup calls visit with one connected port for each port group whose ports share a policy, and with each port that
// sets the policy itself.
func (l *look) eachGroup(own func(*plan.Effective) bool, visit func(*plan.Switch, *plan.Port)) {
	seen := map[[2]string]bool{}
	l.eachPort(func(sw *plan.Switch, p *plan.Port, _ *counts) {
		key := [2]string{sw.Name, p.PortGroup}
		if own(p.Policy) {
			visit(sw, p)
		} else if !seen[key] {
			seen[key] = true
			visit(sw, p)
		}
	})
}

// onGroup returns a finding about a port group, or about a port that sets the policy itself.
func onGroup(p *plan.Port, own bool, sign string) api.Finding {
	f := api.Finding{Switch: p.ID.Switch, PortGroup: p.PortGroup, Sign: sign}
	if own {
		f.PortGroup, f.Port = "", p.ID.Name
	}
	return f
}

func ownLearning(e *plan.Effective) bool {
	return e.Learning.Enabled.From == plan.FromPort || e.ForgedTransmits.From == plan.FromPort ||
		e.Promiscuous.From == plan.FromPort
}

func learningForged(l *look) (found []api.Finding) {
	l.eachGroup(ownLearning, func(_ *plan.Switch, p *plan.Port) {
		if !p.Policy.Learning.Enabled.V || p.Policy.ForgedTransmits.V {
			return
		}
		f := onGroup(p, ownLearning(p.Policy), "security.macLearning.enabled is true, and security.forgedTransmits is "+
			"reject")
		found = append(found, remedy(f, l.explain.Fix(p, "Accept forged transmits: what may be learned has to be let "+
			"in. Or switch learning off, if the guest has one address.",
			plan.Setting{Path: "security.forgedTransmits", Value: string(spec.Accept)})))
	})
	return found
}

func learningPromiscuous(l *look) (found []api.Finding) {
	measured := promiscuous(l) // says more about the same
	l.eachPort(func(_ *plan.Switch, p *plan.Port, _ *counts) {
		if !p.Policy.Learning.Enabled.V || !p.Policy.Promiscuous.V || l.Host.Facts[p.ID].Promiscuous == plan.AsksNo {
			return
		}
		for i := range measured {
			if measured[i].Switch == p.ID.Switch && measured[i].Port == p.ID.Name {
				return
			}
		}
		f := onPort(p, "security.macLearning.enabled is true, and security.promiscuous is accept")
		found = append(found, remedy(f, l.explain.Fix(p, "Have it get its own frames alone: with learning they reach "+
			"it without promiscuous mode.", plan.Setting{Path: "security.promiscuous", Value: string(spec.Reject)})))
	})
	return found
}

func promiscuousUplinks(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		if sw.ReversePathPromiscuous {
			continue
		}
		on := l.usable(links(sw, choices(sw)))
		var ports []string
		for _, p := range sw.Ports {
			if l.connected(p.ID) && p.Policy.Promiscuous.V && l.Host.Facts[p.ID].Promiscuous != plan.AsksNo &&
				p.Policy.Teaming.Policy.V != spec.IPHash && reaching(on, &p.Policy.VLAN.V) > 1 {
				ports = append(ports, p.ID.Name)
			}
		}
		if len(ports) == 0 {
			continue
		}
		const most = 5
		names := strings.Join(ports[:min(len(ports), most)], ", ")
		if more := len(ports) - most; more > 0 {
			names += ", and " + many(uint64(more), "more port")
		}
		f := api.Finding{Switch: sw.Name, Sign: "checks.reversePathPromiscuous is off, " + linkNames(on) +
			" can be used, and promiscuous mode is accepted at " + names}
		found = append(found, remedy(f, l.explain.FixSwitch(sw.Name, "Switch the check on, or use MAC learning in "+
			"place of promiscuous mode.", "checks: {reversePathPromiscuous: true}")))
	}
	return found
}

// reaching returns how many of the links carry a VLAN of the port.
func reaching(on []link, v *plan.VLAN) (n int) {
	vlans := vlansOf(v)
	for _, k := range on {
		if carries := k.vlans(); overlap(&carries, &vlans) {
			n++
		}
	}
	return n
}
