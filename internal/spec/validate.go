package spec

import (
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Validate checks a configuration made in memory like Parse checks a file. The error is Faults, nil if there are none;
// they have lines if cfg came from Parse.
func (c *Config) Validate() error {
	v := newValidator(c)
	v.config()
	return v.found.err()
}

// checkRead checks a configuration as it is in the file, and adds faults to those found while it was read.
func (c *Config) checkRead(found collection) collection {
	v := newValidator(c)
	v.reading, v.found = true, found
	v.config()
	return v.found
}

// validator walks a configuration and collects what is wrong with it.
type validator struct {
	cfg *Config
	src *source
	// reading: the configuration is as in the file, so that a zero value that is written differs from a missing
	// one.
	reading bool
	// connecting: the present port is connected at run time, not declared in the configuration.
	connecting bool
	// fleet: the configuration is the definition of many hosts.
	fleet bool
	found collection

	switches  map[string]int // index of the first switch with the name
	groups    []map[string]int
	uplinks   []map[string]int
	devices   map[string]string // what the device is used by, in words
	addresses map[netip.Addr]string
	ports     map[string]int // index of the first port with the name
	macs      []map[[6]byte]string
}

func newValidator(c *Config) *validator {
	v := &validator{cfg: c, src: c.src, switches: map[string]int{}, devices: map[string]string{},
		addresses: map[netip.Addr]string{}, ports: map[string]int{}}
	if v.src == nil {
		v.src = newSource("")
	}
	return v
}

// fault reports what is wrong at a, unless that part of the file could not be read anyway.
func (v *validator) fault(a at, value, format string, args ...any) {
	v.report(a, Fault{Value: value, Message: fmt.Sprintf(format, args...)})
}

// missing reports a name at a that does not exist.
func (v *validator) missing(a at, value, message string) {
	v.report(a, Fault{Value: value, Message: message, Missing: true})
}

func (v *validator) report(a at, f Fault) {
	if v.src.spoilt(a) {
		return
	}
	if p := v.src.find(a); v.found.takes(p) {
		f.File, f.Line, f.Column, f.Path = v.src.file, p.line, p.column, a.show()
		v.found.add(f)
	}
}

// written says whether the file has that field at a, even with its zero value.
func (v *validator) written(a at, field string) bool {
	if !v.reading {
		return false
	}
	_, ok := v.src.at(fieldKey(a.key, field))
	return ok
}

// name checks the name of an object at a; a missing name is reported at the position of the object.
func (v *validator) name(a at, name string) {
	if name == "" && !v.written(a, "name") {
		v.fault(a.field("name"), "", "a name is needed")
	} else if msg := checkName(name); msg != "" {
		v.fault(a.field("name"), shown(name), "%s", msg)
	}
}

// enum checks that a field at a has one of a fixed set of words; "" means it is not set.
func enum[T ~string](v *validator, a at, field string, value T, allowed ...T) {
	if slices.Contains(allowed, value) || value == "" && !v.written(a, field) {
		return
	}
	words := make([]string, len(allowed))
	for i, w := range allowed {
		words[i] = string(w)
	}
	v.fault(a.field(field), shown(string(value)), "must be %s", orList(words))
}

func orList(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (v *validator) config() {
	v.devices, v.ports = make(map[string]string, len(v.cfg.Ports)), make(map[string]int, len(v.cfg.Ports))
	checkHead(v, len(v.cfg.Ports))
	checkPorts(v, func(yield func(int) bool) {
		for i := range v.cfg.Ports {
			if !yield(i) {
				return
			}
		}
	})
	checkTogether(v)
}

// checkHead checks what is about no port; the maps are sized for the number of ports.
func checkHead(v *validator, ports int) {
	v.host()
	v.allSwitches(ports)
}

// checkPorts checks these ports, each against the switches and those before it.
func checkPorts(v *validator, which iter.Seq[int]) {
	routes := newRouteRules(v)
	for i := range which {
		p := &v.cfg.Ports[i]
		a := at{}.field("ports").item(i, p.Name)
		v.port(a, p)
		routes.check(a, p, nil)
		v.claim(i)
	}
}

// checkTogether checks the rules between the switches and the ports. It is asked for every file, also for one whose
// ports are those of the file before.
func checkTogether(v *validator) {
	tunnelRules{v}.carriers()
	tunnelRules{v}.overlays()
	v.capacity()
}

// allSwitches checks the switches; the maps are sized for the number of ports.
func (v *validator) allSwitches(ports int) {
	root := at{}.field("switches")
	for i := range v.cfg.Switches {
		v.macs = append(v.macs, make(map[[6]byte]string, ports/len(v.cfg.Switches)))
		v.oneSwitch(root.item(i, v.cfg.Switches[i].Name), i)
	}
}

func (v *validator) oneSwitch(a at, i int) {
	s := &v.cfg.Switches[i]
	v.name(a, s.Name)
	if strings.Contains(s.Name, "/") {
		v.fault(a.field("name"), shown(s.Name), "a switch's name holds no /, since that separates it from its ports' "+
			"names")
	}
	if first, dup := v.switches[s.Name]; dup && s.Name != "" {
		v.fault(a.field("name"), shown(s.Name), "another switch has this name%s: names of switches differ",
			v.line(at{}.field("switches").item(first, "").field("name")))
	} else {
		v.switches[s.Name] = i
	}
	enum(v, a, "kind", s.Kind, Standard, Distributed)
	v.mtu(a, s.MTU)
	v.groups = append(v.groups, map[string]int{})
	v.uplinks = append(v.uplinks, map[string]int{})
	for j := range s.Uplinks {
		v.uplink(a, i, j)
	}
	v.lags(a, i)
	tunnelRules{v}.tunnel(a, i)
	v.duration(a, "upDelay", s.UpDelay, 0, MaxUpDelay, "100ms")
	ipfixRules{v}.ipfix(a, i)
	enum(v, a.field("discovery"), "lldp", s.Discovery.LLDP, LLDPNone, LLDPListen, LLDPAdvertise, LLDPBoth)
	chain := []level{{at: a.field("defaults"), policy: &s.Defaults, kind: "switch", name: s.Name}}
	v.policy(i, chain)
	for j := range s.PortGroups {
		v.group(a, i, j, chain)
	}
}

// duration checks that a field at a, if it is set, is a duration between least and most.
func (v *validator) duration(a at, field, value string, least, most time.Duration, example string) {
	if value == "" && !v.written(a, field) {
		return
	}
	if d, err := time.ParseDuration(value); err != nil || d < least || d > most {
		v.fault(a.field(field), shown(value), "must be a duration of %v–%v, such as %s", least, most, example)
	}
}

// line says where the value at a is, for a message about another place.
func (v *validator) line(a at) string {
	if p, ok := v.src.at(a.key); ok && p.line > 0 {
		return " on line " + strconv.Itoa(p.line)
	}
	return ""
}

// mtu checks the field mtu at a.
func (v *validator) mtu(a at, mtu int) {
	if (mtu != 0 || v.written(a, "mtu")) && (mtu < MinMTU || mtu > MaxMTU) {
		v.fault(a.field("mtu"), strconv.Itoa(mtu), "an MTU is %d–%d bytes", MinMTU, MaxMTU)
	}
}

func (v *validator) uplink(sw at, i, j int) {
	s := &v.cfg.Switches[i]
	u := &s.Uplinks[j]
	list := sw.field("uplinks")
	a := list.item(j, u.Name)
	v.name(a, u.Name)
	if first, dup := v.uplinks[i][u.Name]; dup && u.Name != "" {
		v.fault(a.field("name"), shown(u.Name), "another uplink of switch %s has this name%s: names of uplinks differ",
			s.Name, v.line(list.item(first, "").field("name")))
	} else {
		v.uplinks[i][u.Name] = j
	}
	v.device(a, u.Device, fmt.Sprintf("uplink %s of switch %s", u.Name, s.Name))
	if v.written(a, "vlans") || u.VLANs != nil {
		v.ranges(a.field("vlans"), u.VLANs)
	}
	v.monitoring(a.field("monitoring"), u.Monitoring)
}

// device checks the field device at a, and that nothing else uses the device; user is what uses it from now on.
func (v *validator) device(a at, device, user string) {
	if device == "" && !v.written(a, "device") {
		return
	}
	a = a.field("device")
	if msg := checkDevice(device); msg != "" {
		v.fault(a, shown(device), "%s", msg)
		return
	}
	if other, dup := v.devices[device]; dup {
		v.fault(a, shown(device), "%s uses this device already: a device serves one port or uplink", other)
		return
	}
	v.devices[device] = user
}

// ranges checks a list of VLAN ids and ranges.
func (v *validator) ranges(a at, list []string) {
	if len(list) == 0 {
		v.fault(a, "[]", `no VLAN at all: list ids and ranges, such as [10, "20-30"]; 0 is for untagged frames`)
	}
	seen := map[VLANRange]bool{}
	for i, s := range list {
		r, err := ParseVLANRange(s)
		switch {
		case err != nil:
			v.fault(a.item(i, ""), shown(s), "%v", err)
		case seen[r]:
			v.fault(a.item(i, ""), shown(s), "listed twice: keep one")
		}
		seen[r] = err == nil
	}
}

func (v *validator) group(sw at, i, j int, chain []level) {
	s := &v.cfg.Switches[i]
	g := &s.PortGroups[j]
	list := sw.field("portGroups")
	a := list.item(j, g.Name)
	v.name(a, g.Name)
	if first, dup := v.groups[i][g.Name]; dup && g.Name != "" {
		v.fault(a.field("name"), shown(g.Name), "another port group of switch %s has this name%s: names of port "+
			"groups differ", s.Name, v.line(list.item(first, "").field("name")))
	} else {
		v.groups[i][g.Name] = j
	}
	bindingRules{v}.binding(a, g)
	tunnelRules{v}.overlay(a, i, g)
	v.policy(i, append(chain[:1:1], level{at: a, policy: &g.Policy, kind: "port group", name: g.Name}))
}
