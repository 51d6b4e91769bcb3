package trace

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"heddle/internal/diagnose"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// remedy is the change of a port's policy that fixes a cause: YAML for the file, and the flags of "heddle port
// connect" for the same.
type remedy struct {
	policy string
	level  plan.Level
	set    string
	flags  string
	// portOnly: it is set at the port, whichever level the port's value comes from now.
	portOnly bool
}

// settings returns the remedy that gives fields of the port's policy other values; the first of them is the one at
// fault. All belong to one part of the policy.
func settings(p *plan.Port, list ...plan.Setting) remedy {
	r := remedy{policy: list[0].Path, set: plan.SettingsYAML(list...)}
	if f, known := plan.FieldOf(r.policy); known {
		r.level, r.portOnly = f.Level(p.Policy), f.PortOnly()
	}
	flags := make([]string, len(list))
	for i, s := range list {
		flags[i] = s.Flag()
	}
	r.flags = strings.Join(flags, " ")
	return r
}

// set proposes another value for one field of the port's policy.
func (s *subject) set(c *diagnose.Cause, p *plan.Port, path, value string) {
	s.fix(c, p, settings(p, plan.Setting{Path: path, Value: value}))
}

// setRow fills in a value of the port's present policy.
func setRow(c *diagnose.Cause, p *plan.Port, policy string) {
	for _, r := range p.Rows() {
		if r.Policy == policy {
			setBy(c, r.Policy, r)
		}
	}
}

// setBy records the setting that causes it; policy is its path in the file, in words.
func setBy(c *diagnose.Cause, policy string, r plan.Row) {
	c.Setting = &r
	c.Policy, c.Value, c.From = policy, r.Value.String(), r.From.String()
}

// notSet records that no setting causes it, but something else that has a value.
func notSet(c *diagnose.Cause, what, value, from string) {
	c.Setting, c.Policy, c.Value, c.From = nil, what, value, from
}

// fix proposes to change a port's policy at the level that it comes from, or at the level that affects the fewest
// ports.
func (s *subject) fix(c *diagnose.Cause, p *plan.Port, r remedy) {
	setRow(c, p, r.policy)
	own, connected := s.RunTime[p.ID.Name]
	switch {
	case (r.level == plan.FromPort || r.portOnly) && connected:
		c.Command = connectCommand(own, p.ID.Switch, r.flags)
		c.Change = "Connect the port again with the other setting."
	case r.level == plan.FromPort || r.portOnly:
		s.edit(c, diagnose.EditPort, p.ID.Name, r.set)
	default:
		s.edit(c, diagnose.EditGroup, p.PortGroup, r.set)
		c.Edit.Switch = p.ID.Switch
	}
}

// edit proposes a change of the configuration file.
func (s *subject) edit(c *diagnose.Cause, kind diagnose.EditObject, name, set string) {
	c.Edit = &diagnose.Edit{File: s.File, Switch: s.from.id.Switch, Kind: kind, Name: name, Set: set}
	c.Command = s.apply()
}

// apply returns the command that applies the configuration file.
func (t *tracer) apply() string {
	file := t.File
	if file == "" || strings.HasPrefix(file, "<") { // standard input
		file = "FILE"
	}
	return "heddle apply -f " + printable.ShellWord(file)
}

// command returns a command about a port or an uplink, as it can be typed.
func (t *tracer) command(id plan.PortID, verb string, more ...string) string {
	return diagnose.Command(t.Plan, id, verb, more...)
}

// otherGroup returns another port group of the port's switch in an overlay segment, 0 for none, with the wanted policy;
// "" where there is none. The port group named first is preferred.
func (s *subject) otherGroup(p *plan.Port, first string, vni uint32, wanted func(*plan.Effective) bool) (found string) {
	for _, g := range s.Groups {
		if g.Switch == p.ID.Switch && g.Name != p.PortGroup && g.VNI == vni && wanted(&g.Policy) &&
			(found == "" || g.Name == first) {
			found = g.Name
		}
	}
	return found
}

// moveTo proposes another port group for the port, if one of its overlay segment, or of none, has the wanted policy.
func (s *subject) moveTo(c *diagnose.Cause, p *plan.Port, wanted func(*plan.Effective) bool) bool {
	return s.moveInto(c, p, p.VNI, wanted)
}

// moveInto proposes another port group for the port, if one of an overlay segment has the wanted policy. If the file
// put the port into its port group, the change is in the file, because a command would make the two disagree;
// otherwise it is a command. A port that a command moved goes back to the file's port group if that has the wanted
// policy.
func (s *subject) moveInto(c *diagnose.Cause, p *plan.Port, vni uint32, wanted func(*plan.Effective) bool) bool {
	inFile := s.ByCommand[p.ID.Name].PortGroup
	group := s.otherGroup(p, inFile, vni, wanted)
	if group == "" {
		return false
	}
	if _, connected := s.RunTime[p.ID.Name]; connected || inFile != "" {
		c.Edit, c.Command = nil, s.command(p.ID, "port move", "--port-group", group)
		return true
	}
	s.edit(c, diagnose.EditPort, p.ID.Name, "portGroup: "+yamlName(group))
	return true
}

// yamlName returns a name of the configuration as a YAML string: an unquoted one could be read as a number, a truth
// value, null or a mapping.
func yamlName(name string) string {
	var plain any
	if err := yaml.Unmarshal([]byte(name), &plain); err == nil && plain == any(name) {
		return name
	}
	return strconv.Quote(name)
}

// overrides returns which settings a port of that port group may have for itself.
func (s *subject) overrides(p *plan.Port) spec.Overrides {
	for _, g := range s.Groups {
		if g.Switch == p.ID.Switch && g.Name == p.PortGroup {
			return g.Overrides
		}
	}
	return spec.Overrides{}
}

// connectCommand returns the command that connects a run-time port again, with its present settings and the flags
// added.
func connectCommand(p spec.Port, sw, flags string) string {
	words := []string{"heddle port connect", printable.ShellWord(p.Name), "--replace"}
	add := func(flag, value string) {
		if value != "" {
			words = append(words, "--"+flag, printable.ShellWord(value))
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
	for _, f := range ownPolicy(&p.Policy) {
		if !given[f.name] && !(f.vlan && (given["vlan"] || given["trunk"])) {
			words = append(words, "--"+f.name+"="+printable.ShellWord(f.value))
		}
	}
	return strings.Join(append(words, flags), " ")
}

// flag is a flag of "heddle port connect"; vlan: it is one of those of the VLAN policy.
type flag struct {
	name, value string
	vlan        bool
}

// ownPolicy returns, as flags, the policy that a port sets for itself.
func ownPolicy(p *spec.Policy) []flag {
	var flags []flag
	for _, f := range plan.Fields() {
		if f.Kind == plan.KindVLAN {
			flags = append(flags, vlanFlags(p.VLAN)...)
		} else if value, set := f.Own(p); set {
			flags = append(flags, flag{name: f.Flag, value: value})
		}
	}
	return flags
}

func vlanFlags(v *spec.VLAN) []flag {
	switch {
	case v == nil:
		return nil
	case v.None:
		return []flag{{"vlan", "none", true}}
	case v.Access != 0:
		return []flag{{"vlan", fmt.Sprint(v.Access), true}}
	}
	flags := []flag{{"trunk", strings.Join(v.Trunk, ","), true}}
	if v.Outer == "802.1ad" {
		flags = append(flags, flag{"qinq", "true", true})
	}
	return flags
}
