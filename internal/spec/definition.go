package spec

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v4"

	"heddle/internal/spec/printable"
)

// Definition is what controllers keep for many hosts: the distributed switches, whose uplinks have only names there,
// and which device each uplink is on which host.
type Definition struct {
	// Switches are the distributed switches.
	Switches []Switch `yaml:"switches" json:"switches"`
	// Templates say for many hosts at once which switches they have.
	Templates []HostTemplate `yaml:"templates,omitempty" json:"templates,omitzero"`
	// Hosts say it for one host. A host that no template and no entry gives a switch has none.
	Hosts []HostEntry `yaml:"hosts,omitempty" json:"hosts,omitzero"`
	// Ports are settings of single static ports.
	Ports []PortSettings `yaml:"ports,omitempty" json:"ports,omitzero"`

	src *source
}

// HostTemplate gives switches to the hosts that have its labels.
type HostTemplate struct {
	// Name is the template's.
	Name string `yaml:"name" json:"name"`
	// Labels that a host must have; none: every host.
	Labels map[string]string `yaml:"labels,omitempty" json:"labels,omitzero"`
	// Switches are those that the hosts have.
	Switches []HostSwitch `yaml:"switches,omitempty" json:"switches,omitzero"`
	// HostPorts are ports with addresses of the host's own (the vmk role).
	HostPorts []HostPort `yaml:"hostPorts,omitempty" json:"hostPorts,omitzero"`
}

// HostEntry is the definition of one host.
type HostEntry struct {
	// Name is the one by which the host joined, or will.
	Name string `yaml:"name" json:"name"`
	// Labels choose the templates that count for the host.
	Labels map[string]string `yaml:"labels,omitempty" json:"labels,omitzero"`
	// Switches are those that the host has; an entry replaces that of a template for the same switch.
	Switches []HostSwitch `yaml:"switches,omitempty" json:"switches,omitzero"`
	// HostPorts are ports with addresses of the host's own (the vmk role).
	HostPorts []HostPort `yaml:"hostPorts,omitempty" json:"hostPorts,omitzero"`
}

// HostSwitch is a distributed switch on a host.
type HostSwitch struct {
	// Name is the switch's.
	Name string `yaml:"name" json:"name"`
	// Uplinks that have a device there; the others have none on this host.
	Uplinks []HostUplink `yaml:"uplinks,omitempty" json:"uplinks,omitzero"`
}

// HostUplink is the device that is an uplink of a switch on a host.
type HostUplink struct {
	// Name is the uplink's.
	Name string `yaml:"name" json:"name"`
	// Device is the host's device, which serves nothing else.
	Device string `yaml:"device" json:"device"`
}

// Fits reports whether a host with these labels has all that the template asks for.
func (t *HostTemplate) Fits(labels map[string]string) bool {
	return fits(t.Labels, labels)
}

// ParseDefinition reads and checks a definition. The error is Faults, each with its line.
func ParseDefinition(filename string, data []byte) (*Definition, error) {
	fail := func(p position, msg string) (*Definition, error) {
		return nil, Faults{{File: filename, Line: p.line, Column: p.column, Message: printable.Short(msg, maxMessage)}}
	}
	if msg := TooLargeDefinition(data); msg != "" {
		return fail(position{}, msg)
	}
	if msg := notUTF8(data); msg != "" {
		return fail(position{1, 1}, msg)
	}
	data = asYAML(data)
	d := newDecoder(filename)
	d.named, d.most = true, maxDefinitionValues
	def := &Definition{src: d.src}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return def, nil
	case err != nil:
		p, msg := syntaxError(err)
		return fail(p, msg)
	}
	d.document(&doc, def)
	d.rest(dec)
	found := d.found
	if !d.src.bad[0] {
		found = def.check(found, true)
	}
	if err := found.err(); err != nil {
		return nil, err
	}
	return def, nil
}

// Validate checks a definition made in memory like ParseDefinition checks a file. The error is Faults.
func (d *Definition) Validate() error {
	found := d.check(collection{}, false)
	return found.err()
}

// check adds what is wrong to what was found before.
func (d *Definition) check(found collection, reading bool) collection {
	v := &fleetValidator{newValidator(&Config{Switches: d.Switches, src: d.src})}
	v.reading, v.found, v.fleet = reading, found, true
	v.allSwitches(0)
	v.noDevices(d.Switches)
	tunnelRules{v.validator}.apart()
	names := map[string]bool{}
	hostPorts := &hostPortRules{fleetValidator: v}
	for i, t := range d.Templates {
		a := at{}.field("templates").item(i, t.Name)
		v.once(a, t.Name, names, "template")
		bindingRules{v.validator}.labels(a, t.Labels)
		v.hostSwitches(a, t.Switches)
		hostPorts.list(a, t.HostPorts, t.Switches, "template "+t.Name, false)
	}
	clear(names)
	for i, h := range d.Hosts {
		a := at{}.field("hosts").item(i, h.Name)
		v.once(a, h.Name, names, "host")
		bindingRules{v.validator}.labels(a, h.Labels)
		v.hostSwitches(a, h.Switches)
		hostPorts.list(a, h.HostPorts, h.Switches, "host "+h.Name, true)
	}
	hostPorts.apart()
	v.portSettings(d.Ports)
	return v.found
}

// fleetValidator checks what a definition has beside switches.
type fleetValidator struct{ *validator }

// noDevices checks that the switches are such as many hosts can share.
func (v *fleetValidator) noDevices(switches []Switch) {
	for i, s := range switches {
		a := at{}.field("switches").item(i, s.Name)
		if s.Kind == Standard {
			v.fault(a.field("kind"), string(s.Kind), "a standard switch is one host's own: declare it in that host's "+
				"file")
		}
		for k, u := range s.Uplinks {
			if u.Device != "" {
				v.fault(a.field("uplinks").item(k, u.Name).field("device"), shown(u.Device), "a device is a host's: "+
					"give it in templates[].switches[].uplinks[] or hosts[].switches[].uplinks[]")
			}
		}
	}
}

// once checks the name of an object that is named once in its list.
func (v *fleetValidator) once(a at, name string, names map[string]bool, what string) {
	v.name(a, name)
	if names[name] {
		v.fault(a.field("name"), shown(name), "another %s has this name: names are unique", what)
	}
	names[name] = true
}

// hostSwitches checks the switches of a host or a template.
func (v *fleetValidator) hostSwitches(a at, list []HostSwitch) {
	devices, names := map[string]bool{}, map[string]bool{}
	for i, s := range list {
		under := a.field("switches").item(i, s.Name)
		v.once(under, s.Name, names, "entry")
		k, ok := v.switches[s.Name]
		if !ok {
			v.missing(under.field("name"), shown(s.Name), "there is no such switch")
			continue
		}
		uplinks := map[string]bool{}
		for n, u := range s.Uplinks {
			here := under.field("uplinks").item(n, u.Name)
			v.once(here, u.Name, uplinks, "uplink")
			if _, ok := v.uplinks[k][u.Name]; !ok {
				v.missing(here.field("name"), shown(u.Name), "the switch has no such uplink")
			}
			if msg := checkDevice(u.Device); msg != "" {
				v.fault(here.field("device"), shown(u.Device), "%s", msg)
			} else if devices[u.Device] {
				v.fault(here.field("device"), shown(u.Device), "another uplink here has this device")
			}
			devices[u.Device] = true
		}
	}
}
