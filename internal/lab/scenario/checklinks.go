package scenario

import "fmt"

func (c *checker) physicalSwitch(i int) {
	path, sw := fmt.Sprintf("switches[%d]", i), &c.s.Switches[i]
	switch sw.Kind {
	case Bridge:
		if sw.Config != nil || sw.ConfigFile != "" {
			c.faultIn(path, "switch %q is a Linux bridge and takes no configuration; kind heddle does", sw.Name)
		}
	case Heddle:
		if sw.Config == nil && sw.ConfigFile == "" {
			c.faultIn(path, "switch %q is of kind heddle and has neither config nor configFile", sw.Name)
		}
	default:
		c.faultIn(path+".kind", "%q is no kind of switch; write bridge or heddle", sw.Kind)
	}
}

func (c *checker) router(i int) {
	path, r := fmt.Sprintf("routers[%d]", i), &c.s.Routers[i]
	if len(r.Interfaces) == 0 {
		c.faultIn(path+".interfaces", "router %q has no interface", r.Name)
	}
	seen := map[string]bool{}
	for j, f := range r.Interfaces {
		at := fmt.Sprintf("%s.interfaces[%d]", path, j)
		c.device(at+".device", f.Device)
		c.mac(at+".mac", f.MAC)
		c.addresses(at+".addresses", f.Addresses)
		if seen[f.Device] {
			c.faultIn(at+".device", "router %q has an interface %q already", r.Name, f.Device)
		}
		seen[f.Device] = true
		c.plugged(at, r, f)
	}
}

// plugged checks an interface of a router to which no link is connected.
func (c *checker) plugged(at string, r *Router, f Interface) {
	if !f.OnPort() {
		if f.MTU != 0 {
			c.faultIn(at+".mtu", "interface %q is connected by a link, which has the MTU", f.Device)
		}
		return
	}
	c.mtu(at+".mtu", f.MTU)
	name := r.Name + "/" + f.Device
	c.onPort(at, f.Host, f.Port, name)
	c.take(at+".device", name, "port "+f.Port)
}

func (c *checker) link(i int) {
	path, l := fmt.Sprintf("links[%d]", i), &c.s.Links[i]
	c.mtu(path+".mtu", l.MTU)
	c.linkEnd(path+".a", l.A, l.B)
	c.linkEnd(path+".b", l.B, l.A)
}

// linkEnd checks that the node has such a device for a cable, and marks it as taken.
func (c *checker) linkEnd(path string, e, other End) {
	if e == (End{}) {
		c.faultIn(path, "a link has two ends, a and b")
		return
	}
	kind, ok := c.nodes[e.Node]
	if !ok {
		c.faultIn(path, "there is no node %q", e.Node)
		return
	}
	c.device(path, e.Device)
	if why := c.cannotTake(kind, e); why != "" {
		c.faultIn(path, "%s", why)
		return
	}
	c.take(path, e.String(), other.String())
}

// cannotTake returns why a cable can't be connected there, "" if it can.
func (c *checker) cannotTake(kind string, e End) string {
	switch kind {
	case "VM":
		return fmt.Sprintf("%q is a VM; a VM is connected by host and port, not by a link", e.Node)
	case "host":
		h := c.s.Host(e.Node)
		if h.Config != nil && c.s.uplinkOf(h, e.Device) == "" {
			return fmt.Sprintf("host %q has no uplink with device %q", e.Node, e.Device)
		}
	case "controller":
		if e.Device != ControllerDevice {
			return fmt.Sprintf("controller %q has one adapter, %s", e.Node, ControllerDevice)
		}
	case "router":
		if r := c.s.router(e.Node); r != nil && !r.has(e.Device) {
			return fmt.Sprintf("router %q has no interface %q", e.Node, e.Device)
		}
	case "switch":
		if sw := c.s.Switch(e.Node); sw != nil && sw.Kind == Heddle && sw.Config != nil &&
			PortWithDevice(sw.Config, e.Device) == nil {
			return fmt.Sprintf("switch %q has no port with device %q in its configuration", e.Node, e.Device)
		}
	}
	return ""
}

// loose finds devices that need a cable but have none: they would have no carrier, and silently do nothing.
func (c *checker) loose() {
	for i, h := range c.s.Hosts {
		if h.Config == nil {
			continue
		}
		for _, u := range c.s.uplinks(&h) {
			if _, ok := c.taken[h.Name+"/"+u.Device]; u.Device != "" && !ok {
				c.faultIn(fmt.Sprintf("hosts[%d]", i),
					"uplink %q of host %q is bound to device %q, which no link and no adapter provides",
					u.Name, h.Name, u.Device)
			}
		}
	}
	for i, k := range c.s.Controllers {
		if _, ok := c.taken[k.Name+"/"+ControllerDevice]; !ok {
			c.faultIn(fmt.Sprintf("controllers[%d]", i), "no link connects adapter %q of controller %q",
				ControllerDevice, k.Name)
		}
	}
	for i, r := range c.s.Routers {
		for j, f := range r.Interfaces {
			if _, ok := c.taken[r.Name+"/"+f.Device]; !ok {
				c.faultIn(fmt.Sprintf("routers[%d].interfaces[%d]", i, j),
					"no link connects interface %q of router %q, and it is on no port", f.Device, r.Name)
			}
		}
	}
}

// Switch finds a physical switch by name, nil when there is none.
func (s *Scenario) Switch(name string) *Switch {
	for i := range s.Switches {
		if s.Switches[i].Name == name {
			return &s.Switches[i]
		}
	}
	return nil
}

func (s *Scenario) router(name string) *Router {
	for i := range s.Routers {
		if s.Routers[i].Name == name {
			return &s.Routers[i]
		}
	}
	return nil
}

func (r *Router) has(device string) bool {
	for _, f := range r.Interfaces {
		if f.Device == device {
			return true
		}
	}
	return false
}
