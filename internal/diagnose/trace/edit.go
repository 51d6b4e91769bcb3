package trace

import (
	"fmt"
	"strings"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// remedy is how a policy of a port is to be changed: YAML for the file, and what "heddle port connect" takes for the same.
type remedy struct {
	policy string
	level  plan.Level
	set    string
	flags  string
}

// row fills in a port's policy as it stands.
func (c *Cause) row(p *plan.Port, policy string) {
	for _, r := range p.Rows() {
		if r.Policy == policy {
			c.Policy, c.Value, c.From = r.Policy, r.Value, r.From
		}
	}
}

// mend has a port's policy changed where the port gets it from, or where it can be changed for the fewest.
func (s *subject) mend(c *Cause, p *plan.Port, r remedy) {
	c.row(p, r.policy)
	own, connected := s.RunTime[p.ID.Name]
	switch {
	case r.level == plan.FromPort && connected:
		c.Command = connectCommand(own, p.ID.Switch, r.flags)
		c.Change = "Connect the port again with the other setting."
	case r.level == plan.FromPort:
		s.edit(c, EditPort, p.ID.Name, r.set)
	default:
		s.edit(c, EditGroup, p.PortGroup, r.set)
		c.Edit.Switch = p.ID.Switch
	}
}

// edit has the configuration file changed.
func (s *subject) edit(c *Cause, kind EditObject, name, set string) {
	c.Edit = &Edit{File: s.File, Switch: s.from.id.Switch, Kind: kind, Name: name, Set: set}
	c.Command = s.apply()
}

func (s *subject) apply() string {
	file := s.File
	if file == "" || strings.HasPrefix(file, "<") { // standard input
		file = "FILE"
	}
	return "heddle apply -f " + shellWord(file)
}

// shellWord quotes a word where a shell would read it otherwise.
func shellWord(w string) string {
	if w != "" && strings.IndexFunc(w, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_", r)
	}) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

// moveTo has the port moved into another port group of its switch, if one does what is wanted.
func (s *subject) moveTo(p *plan.Port, wanted func(*plan.Effective) bool) (command string) {
	for _, g := range s.Groups {
		if g.Switch == p.ID.Switch && g.Name != p.PortGroup && wanted(&g.Policy) {
			return fmt.Sprintf("heddle port move %s --port-group %s", p.ID.Name, shellWord(g.Name))
		}
	}
	return ""
}

// overrides says what a port of that port group may set for itself.
func (s *subject) overrides(p *plan.Port) spec.Overrides {
	for _, g := range s.Groups {
		if g.Switch == p.ID.Switch && g.Name == p.PortGroup {
			return g.Overrides
		}
	}
	return spec.Overrides{}
}

// connectCommand connects a port that was connected by command once more, as it is but for the flags added.
func connectCommand(p spec.Port, sw, flags string) string {
	words := []string{"heddle port connect", shellWord(p.Name), "--replace"}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, "--"+flag, shellWord(value))
		}
	}
	add("switch", sw)
	add("port-group", p.PortGroup)
	add("device", p.Device)
	add("mac", p.MAC)
	add("role", string(p.Role))
	add("owner", p.Owner)
	for _, a := range p.Addresses {
		add("address", a)
	}
	if p.MTU != 0 {
		add("mtu", fmt.Sprint(p.MTU))
	}
	if p.TxUplink {
		words = append(words, "--tx-uplink")
	}
	add("qmp", p.Monitor.Socket)
	add("qmp-nic", p.Monitor.NIC)
	given := map[string]bool{}
	for w := range strings.FieldsSeq(flags) {
		name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
		given[name] = true
	}
	vlan := given["vlan"] || given["trunk"]
	for _, f := range ownPolicy(&p.Policy) {
		if f.value != "" && !given[f.name] && !(vlan && (f.name == "vlan" || f.name == "trunk" || f.name == "qinq")) {
			words = append(words, "--"+f.name+"="+shellWord(f.value))
		}
	}
	return strings.Join(append(words, flags), " ")
}

// flag is a flag of "heddle port connect"; one without a value is not given.
type flag struct{ name, value string }

// ownPolicy gives what a port sets for itself as flags.
func ownPolicy(p *spec.Policy) []flag {
	sec, learn, team := &p.Security, &p.Security.MACLearning, &p.Teaming
	flags := []flag{
		{"blocked", truth(p.Blocked)}, {"promiscuous", string(sec.Promiscuous)}, {"mac-changes", string(sec.MACChanges)},
		{"forged-transmits", string(sec.ForgedTransmits)}, {"loop-detection", truth(sec.LoopDetection)}, {"guest-link-control", list(sec.GuestLinkControl)},
		{"mac-learning", truth(learn.Enabled)},
		{"unicast-flooding", truth(learn.UnicastFlooding)}, {"mac-limit-policy", string(learn.LimitPolicy)}, {"mac-ageing", learn.Ageing},
		{"teaming", string(team.Policy)}, {"active", list(team.Active)}, {"standby", list(team.Standby)}, {"failback", truth(team.Failback)},
		{"notify-switches", truth(team.NotifySwitches)}, {"failure-detection", string(team.FailureDetection)}, {"ipfix", truth(p.Monitoring.IPFIX)}, {"ipfix-observe", string(p.Monitoring.Observe)},
	}
	storm := &p.StormControl
	flags = append(flags, flag{"storm-broadcast", number(storm.Broadcast)}, flag{"storm-multicast", number(storm.Multicast)},
		flag{"storm-unknown-unicast", number(storm.UnknownUnicast)}, flag{"storm-burst", storm.Burst})
	if learn.Limit != nil {
		flags = append(flags, flag{"mac-limit", fmt.Sprint(*learn.Limit)})
	}
	switch v := p.VLAN; {
	case v == nil:
	case v.None:
		flags = append(flags, flag{"vlan", "none"})
	case v.Access != 0:
		flags = append(flags, flag{"vlan", fmt.Sprint(v.Access)})
	default:
		flags = append(flags, flag{"trunk", strings.Join(v.Trunk, ",")})
		if v.Outer == "802.1ad" {
			flags = append(flags, flag{"qinq", "true"})
		}
	}
	return flags
}

func truth(b *bool) string {
	if b == nil {
		return ""
	}
	return fmt.Sprint(*b)
}

func number(n *int) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func list(names *[]string) string {
	if names == nil {
		return ""
	}
	return strings.Join(*names, ",")
}
