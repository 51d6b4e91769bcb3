package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/spec"
)

// policyFlags are the policies that a port sets for itself on the command line: what is not given is inherited.
type policyFlags struct {
	vlan    string
	trunk   []string
	qinq    bool
	policy  spec.Policy // the fields whose zero value means "inherited"
	answers map[string]*bool
	limit   int
	storm   map[string]*int
	active  []string
	// linkControl is what may pass of a guest's link control.
	linkControl []string
	standby     []string
	switches    []answerFlag
}

// rateFlag is a flag for a rate of storm control, which is inherited where it is not given.
type rateFlag struct {
	name, what string
	field      func(*spec.StormControl) **int
}

func rateFlags() []rateFlag {
	return []rateFlag{
		{"storm-broadcast", "broadcast frames", func(s *spec.StormControl) **int { return &s.Broadcast }},
		{"storm-multicast", "multicast frames", func(s *spec.StormControl) **int { return &s.Multicast }},
		{"storm-unknown-unicast", "frames for unknown destinations", func(s *spec.StormControl) **int { return &s.UnknownUnicast }},
	}
}

// answerFlag is a flag for a field that is inherited, true or false.
type answerFlag struct {
	name, usage string
	field       func(*spec.Policy) **bool
}

func answerFlags() []answerFlag {
	return []answerFlag{
		{"blocked", "connect it blocked", func(p *spec.Policy) **bool { return &p.Blocked }},
		{"loop-detection", "block the port for a while when frames go round by it", func(p *spec.Policy) **bool { return &p.Security.LoopDetection }},
		{"mac-learning", "learn the addresses behind the port", func(p *spec.Policy) **bool { return &p.Security.MACLearning.Enabled }},
		{"unicast-flooding", "deliver frames for unknown destinations to a learning port", func(p *spec.Policy) **bool { return &p.Security.MACLearning.UnicastFlooding }},
		{"failback", "return to an uplink that works again", func(p *spec.Policy) **bool { return &p.Teaming.Failback }},
		{"notify-switches", "announce the port on its new uplink after a failover", func(p *spec.Policy) **bool { return &p.Teaming.NotifySwitches }},
		{"ipfix", "meter the flows of the port's traffic", func(p *spec.Policy) **bool { return &p.Monitoring.IPFIX }},
	}
}

func (o *policyFlags) flags(c *cobra.Command) {
	f, p := c.Flags(), &o.policy
	f.StringVar(&o.vlan, "vlan", "", "the port's own VLAN: an id 1–4094, or none for untagged frames")
	f.StringSliceVar(&o.trunk, "trunk", nil, "the port's own trunk: the VLANs that pass with their tags, such as 0,10-20 (0 = untagged)")
	f.BoolVar(&o.qinq, "qinq", false, "the trunk's tags are 802.1ad")
	f.StringVar((*string)(&p.Security.Promiscuous), "promiscuous", "", "accept or reject: may the owner ask for frames that are for others")
	f.StringVar((*string)(&p.Security.MACChanges), "mac-changes", "", "accept or reject: may the owner's adapter change its MAC")
	f.StringVar((*string)(&p.Security.ForgedTransmits), "forged-transmits", "", "accept or reject: may frames with another source MAC enter")
	f.StringSliceVar(&o.linkControl, "guest-link-control", nil, "link control that the guest may send: lacp, lldp, eapol, ptp, cdp, bpdu; \"\" for none")
	f.IntVar(&o.limit, "mac-limit", 0, "how many MACs are learned on the port: 0–4096")
	f.StringVar((*string)(&p.Security.MACLearning.LimitPolicy), "mac-limit-policy", "", "drop or allow: frames from new sources when the limit is reached")
	f.StringVar(&p.Security.MACLearning.Ageing, "mac-ageing", "", "how long a silent learned MAC stays known, such as 10m")
	f.StringVar((*string)(&p.Teaming.Policy), "teaming", "", "originating-port, source-mac, ip-hash, explicit or load-based")
	f.StringSliceVar(&o.active, "active", nil, "uplinks in use, in order")
	f.StringSliceVar(&o.standby, "standby", nil, "uplinks used when no active one works")
	f.StringVar((*string)(&p.Teaming.FailureDetection), "failure-detection", "", "link or beacon")
	f.StringVar((*string)(&p.Monitoring.Observe), "ipfix-observe", "", "ingress, egress or both: which flows are metered, seen from the switch")
	f.StringVar(&p.StormControl.Burst, "storm-burst", "", "how much of a storm control rate may come at once, as a time such as 500ms: 10ms–2s")
	o.storm = map[string]*int{}
	for _, r := range rateFlags() {
		o.storm[r.name] = f.Int(r.name, 0, "storm control: how many "+r.what+" the port may send in a second, 0 = any number")
	}
	o.switches, o.answers = answerFlags(), map[string]*bool{}
	for _, a := range o.switches {
		o.answers[a.name] = f.Bool(a.name, false, a.usage)
	}
}

// onto sets what was given.
func (o *policyFlags) onto(c *cobra.Command, p *spec.Policy) error {
	given := c.Flags().Changed
	*p = o.policy
	for _, a := range o.switches {
		if given(a.name) {
			*a.field(p) = o.answers[a.name]
		}
	}
	for _, r := range rateFlags() {
		if given(r.name) {
			*r.field(&p.StormControl) = o.storm[r.name]
		}
	}
	if given("mac-limit") {
		p.Security.MACLearning.Limit = &o.limit
	}
	if given("guest-link-control") {
		p.Security.GuestLinkControl = &o.linkControl
	}
	if given("active") {
		p.Teaming.Active = &o.active
	}
	if given("standby") {
		p.Teaming.Standby = &o.standby
	}
	if given("vlan") || given("trunk") || given("qinq") {
		v, err := o.ownVLAN(given)
		p.VLAN = v
		return err
	}
	return nil
}

func (o *policyFlags) ownVLAN(given func(string) bool) (*spec.VLAN, error) {
	v := &spec.VLAN{}
	switch {
	case given("vlan") && given("trunk"):
		return nil, usagef("--vlan and --trunk exclude each other: a port is in one VLAN, or a trunk")
	case given("qinq") && !given("trunk"):
		return nil, usagef("--qinq is about a trunk's tags: say which VLANs, with --trunk")
	case given("trunk") && len(o.trunk) == 0:
		return nil, usagef("--trunk needs VLANs, such as 0,10-20")
	case given("trunk"):
		v.Trunk = o.trunk
		if o.qinq {
			v.Outer = "802.1ad"
		}
		return v, nil
	case o.vlan == "none":
		v.None = true
		return v, nil
	}
	id, err := strconv.Atoi(o.vlan)
	if err != nil || id < 1 || id > 4094 {
		return nil, usagef("--vlan %s: give an id 1–4094, or none for untagged frames", o.vlan)
	}
	v.Access = id
	return v, nil
}
