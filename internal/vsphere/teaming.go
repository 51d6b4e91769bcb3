package vsphere

import (
	"slices"
	"strings"

	"heddle/internal/spec"
)

func (t *settings) teaming(to *spec.Teaming) {
	f := t.from.Teaming
	if f == nil {
		return
	}
	t.teamingPolicy(f, to)
	to.NotifySwitches = own(f.NotifySwitches, f.Inherited, t.top)
	if rolling := own(f.RollingOrder, f.Inherited, t.top); rolling != nil {
		to.Failback = ptr(!*rolling)
	}
	if reverse := own(f.ReversePolicy, f.Inherited, t.top); reverse != nil && !*reverse {
		t.about.absent("inbound frames follow the teaming policy", "no", "the reverse-path check refuses what comes "+
			"in by another uplink (checks.reversePath)")
	}
	if c := f.FailureCriteria; c != nil {
		inherited := f.Inherited || c.Inherited
		if beacon := own(c.CheckBeacon, inherited, t.top); beacon != nil {
			to.FailureDetection = spec.DetectLink
			if *beacon {
				to.FailureDetection = spec.DetectBeacon
			}
		}
		for _, d := range []struct {
			setting string
			p       *policy[bool]
		}{{"failure detection by duplex", c.CheckDuplex},
			{"failure detection by errors", c.CheckErrorPercent}} {
			if on := own(d.p, inherited, t.top); on != nil && *on {
				t.about.absent(d.setting, "enabled", "an uplink fails with its link, or by beacons")
			}
		}
	}
	if o := f.UplinkPortOrder; o != nil && (t.top || !f.Inherited && !o.Inherited) {
		t.order(o.Active, o.Standby, to)
	}
	t.together(to)
}

func (t *settings) teamingPolicy(f *teaming, to *spec.Teaming) {
	p := own(f.Policy, f.Inherited, t.top)
	if p == nil {
		return
	}
	known := map[string]spec.TeamingPolicy{"loadbalance_srcid": spec.OriginatingPort,
		"loadbalance_srcmac": spec.SourceMAC, "loadbalance_ip": spec.IPHash, "failover_explicit": spec.ExplicitOrder,
		"loadbalance_loadbased": spec.LoadBased}
	got, ok := known[*p]
	if !ok {
		t.about.changed("load balancing", *p, "it is originating-port: this one is not known")
		got = spec.OriginatingPort
	}
	to.Policy = got
	if got == spec.LoadBased {
		t.about.changed("route based on physical NIC load", *p, "it is load-based, which measures and moves ports by "+
			"its own rules: see the page on teaming")
	}
}

// order takes the lists of uplinks. A LAG that is active is so alone.
func (t *settings) order(active, standby []string, to *spec.Teaming) {
	a, s := t.known(active), t.known(standby)
	for _, name := range a {
		if t.switchOf.isLAG(name) && len(a) > 1 {
			t.about.changed("active uplinks", strings.Join(active, ", "), "only the LAG "+name+" is active: a LAG is "+
				"active alone")
			a = []string{name}
			break
		}
	}
	s = slices.DeleteFunc(s, func(name string) bool { return slices.Contains(a, name) })
	to.Active, to.Standby = &a, &s
}

// known are the names of the uplinks and LAGs in a list that the switch has, each once.
func (t *settings) known(list []string) []string {
	got := []string{}
	for _, name := range list {
		to, ok := t.switchOf.uplinks.given[name]
		switch {
		case !ok:
			t.about.absent("uplink in teaming", name, "the switch has no such uplink")
		case t.switchOf.isMember(to):
			t.about.absent("uplink in teaming", name, "it is a port of a LAG: only the LAG itself is in teaming lists")
		case !slices.Contains(got, to):
			got = append(got, to)
		}
	}
	return got
}

func (s *translated) isMember(name string) bool {
	return slices.ContainsFunc(s.to.LAGs, func(l spec.LAG) bool { return slices.Contains(l.Uplinks, name) })
}

// together makes combinations valid that Heddle refuses: with ip-hash there are neither standby uplinks nor beacons.
func (t *settings) together(to *spec.Teaming) {
	above := &spec.Teaming{}
	if !t.top {
		above = &t.switchOf.to.Defaults.Teaming
	}
	policy, detection, standby := to.Policy, to.FailureDetection, to.Standby
	if policy == "" {
		policy = above.Policy
	}
	if detection == "" {
		detection = above.FailureDetection
	}
	if standby == nil {
		standby = above.Standby
	}
	if policy != spec.IPHash {
		if to.FailureDetection == spec.DetectBeacon {
			t.about.changed("beacon probing", "enabled", "beacons go between Heddle's uplinks: with two uplinks both "+
				"stay in use when beacons are lost, where vSphere sends every frame on both")
		}
		return
	}
	if standby != nil && len(*standby) > 0 {
		t.about.changed("standby uplinks", strings.Join(*standby, ", "), "they are unused: with ip-hash there are none")
		to.Standby = &[]string{}
	}
	if detection == spec.DetectBeacon {
		t.about.changed("beacon probing with IP hash", "enabled", "failures are detected by the link alone")
		to.FailureDetection = spec.DetectLink
	}
}
