package scenario

import (
	"fmt"
	"slices"

	"heddle/internal/controller/inventory"
	"heddle/internal/spec"
)

// OfController reports whether the VM is connected to a port group of the controllers' definition.
func (v *VM) OfController() bool { return v.Switch != "" || v.PortGroup != "" }

// Joins reports whether a host joins the controllers of the scenario. A nested host follows its configuration alone.
func (s *Scenario) Joins(h *Host) bool { return len(s.Controllers) > 0 && len(h.NICs) == 0 }

// DeviceOf is what a VM's adapter is called on its host.
func (s *Scenario) DeviceOf(v *VM) string {
	if v.OfController() {
		return v.Device
	}
	return s.port(v.Host, v.Port).Device
}

// switches are those that the definition gives a host, by name; none where it is faulty.
func (s *Scenario) switches(h *Host) map[string]spec.HostSwitch {
	if s.Definition == nil || !s.Joins(h) {
		return nil
	}
	objects, err := inventory.Of(s.Definition)
	if err != nil {
		return nil
	}
	all, err := inventory.New(objects)
	if err != nil {
		return nil
	}
	return all.Switches(h.Name, h.Labels)
}

// uplinks are those of a host's configuration, and those that the definition gives it.
func (s *Scenario) uplinks(h *Host) []spec.HostUplink {
	var all []spec.HostUplink
	for _, sw := range h.Config.Switches {
		for _, u := range sw.Uplinks {
			all = append(all, spec.HostUplink{Name: u.Name, Device: u.Device})
		}
	}
	for _, sw := range s.switches(h) {
		all = append(all, sw.Uplinks...)
	}
	return all
}

// uplinkOf names the uplink of a host that is bound to device, "" when there is none.
func (s *Scenario) uplinkOf(h *Host, device string) string {
	for _, u := range s.uplinks(h) {
		if u.Device == device {
			return u.Name
		}
	}
	return ""
}

// fleet checks the controllers and what goes with them.
func (c *checker) fleet() {
	switch {
	case len(c.s.Controllers) > 0 && c.s.Definition == nil && c.s.DefinitionFile == "":
		c.faultIn("controllers", "controllers serve a definition; write it as definition, or name its file as "+
			"definitionFile")
	case len(c.s.Controllers) == 0 && (c.s.Definition != nil || c.s.DefinitionFile != ""):
		c.faultIn("definition", "there are no controllers that could serve this definition; list some as controllers")
	}
	for i, k := range c.s.Controllers {
		path := fmt.Sprintf("controllers[%d]", i)
		if len(k.Addresses) == 0 {
			c.faultIn(path, "controller %q has no address, under which agents could find it", k.Name)
		}
		c.addresses(path+".addresses", k.Addresses)
	}
	for i := range c.s.Hosts {
		if h := &c.s.Hosts[i]; len(h.Labels) > 0 && !c.s.Joins(h) {
			c.faultIn(fmt.Sprintf("hosts[%d].labels", i), "host %q joins no controller, which labels are for", h.Name)
		}
	}
}

// inGroup checks a VM of a port group of the definition.
func (c *checker) inGroup(path string, v *VM) {
	h := c.s.Host(v.Host)
	if _, given := c.at[path+".port"]; given {
		c.faultIn(path+".port", "a VM is on a port of its host's configuration, or in a port group of the definition; "+
			"keep one of the two")
	}
	switch {
	case h == nil:
		c.faultIn(path+".host", "there is no host %q", v.Host)
		return
	case v.Switch == "" || v.PortGroup == "":
		c.faultIn(path, "VM %q names one of switch and portGroup; it takes both", v.Name)
		return
	case c.s.Definition == nil:
		c.faultIn(path+".switch", "there is no definition with a switch %q", v.Switch)
		return
	}
	if _, there := c.s.switches(h)[v.Switch]; !there {
		c.faultIn(path+".switch", "the definition gives host %q no switch %q", v.Host, v.Switch)
		return
	}
	at := slices.IndexFunc(c.s.Definition.Switches, func(sw spec.Switch) bool { return sw.Name == v.Switch })
	if at < 0 || !slices.ContainsFunc(c.s.Definition.Switches[at].PortGroups,
		func(g spec.PortGroup) bool { return g.Name == v.PortGroup }) {
		c.faultIn(path+".portGroup", "switch %q has no port group %q", v.Switch, v.PortGroup)
		return
	}
	c.device(path+".device", v.Device)
	c.take(path+".host", v.Host+"/"+v.Device, v.Name)
}
