package scenario

import (
	"fmt"
	"net/netip"
	"regexp"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

var (
	namePattern   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,30}$`)
	devicePattern = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}$`)
)

// checker checks the relations between the objects of a scenario.
type checker struct {
	*parser
	s     *Scenario
	nodes map[string]string // node name → what it is
	// taken contains what is connected, for every device and port of a node that can have one thing connected.
	taken map[string]string
}

// check finds every fault of the decoded scenario.
func (p *parser) check(s *Scenario) {
	c := &checker{parser: p, s: s, nodes: map[string]string{}, taken: map[string]string{}}
	c.name("name", s.Name)
	if len(s.Hosts) == 0 {
		c.faultIn("hosts", "a scenario has at least one host")
	}
	c.nodeNames()
	c.fleet()
	for i := range s.Hosts {
		c.host(i)
	}
	c.nesting()
	for i := range s.VMs {
		c.vm(i)
	}
	for i := range s.Switches {
		c.physicalSwitch(i)
	}
	for i := range s.Routers {
		c.router(i)
	}
	for i := range s.Links {
		c.link(i)
	}
	c.loose()
}

func (c *checker) name(path, name string) {
	if !namePattern.MatchString(name) {
		c.faultIn(path, "%q is not a name; use up to 31 lower-case letters, digits and dashes, such as \"esx1\"", name)
	}
}

func (c *checker) device(path, device string) {
	if !devicePattern.MatchString(device) {
		c.faultIn(path, "%q is not a device name; use up to 15 letters, digits, dots, dashes and underscores", device)
	}
}

// nodeNames registers every node; hosts, VMs, switches, routers and controllers share one set of names.
func (c *checker) nodeNames() {
	add := func(path, name, kind string) {
		c.name(path+".name", name)
		if other, ok := c.nodes[name]; ok {
			c.faultIn(path+".name", "%q is the name of a %s already", name, other)
			return
		}
		c.nodes[name] = kind
	}
	for i, h := range c.s.Hosts {
		add(fmt.Sprintf("hosts[%d]", i), h.Name, "host")
	}
	for i, v := range c.s.VMs {
		add(fmt.Sprintf("vms[%d]", i), v.Name, "VM")
	}
	for i, sw := range c.s.Switches {
		add(fmt.Sprintf("switches[%d]", i), sw.Name, "switch")
	}
	for i, r := range c.s.Routers {
		add(fmt.Sprintf("routers[%d]", i), r.Name, "router")
	}
	for i, k := range c.s.Controllers {
		add(fmt.Sprintf("controllers[%d]", i), k.Name, "controller")
	}
}

func (c *checker) host(i int) {
	path, h := fmt.Sprintf("hosts[%d]", i), &c.s.Hosts[i]
	if h.Config == nil {
		if h.ConfigFile == "" {
			c.faultIn(path, "host %q has neither config nor configFile", h.Name)
		}
		return
	}
	for j, n := range h.NICs {
		at := fmt.Sprintf("%s.nics[%d]", path, j)
		c.device(at+".device", n.Device)
		c.mtu(at+".mtu", n.MTU)
		c.mac(at+".mac", n.MAC)
		if c.s.uplinkOf(h, n.Device) == "" {
			c.faultIn(at+".device", "host %q has no uplink with device %q", h.Name, n.Device)
		}
		c.take(at+".device", h.Name+"/"+n.Device, "this adapter")
		c.onPort(at, n.Host, n.Port, h.Name+"/"+n.Device)
	}
}

// onPort checks that host and port exist and are free, and marks the port as taken.
func (c *checker) onPort(path, host, port, owner string) {
	if c.s.Host(host) == nil {
		c.faultIn(path+".host", "there is no host %q", host)
		return
	}
	p := c.s.port(host, port)
	if p == nil {
		c.faultIn(path+".port", "host %q has no port %q in its configuration", host, port)
		return
	}
	if p.Role == spec.Host {
		c.faultIn(path+".port", "port %q of host %q is a host interface; a guest needs a port of role vnic", port, host)
		return
	}
	if p.Device == "" {
		c.faultIn(path+".port", "port %q of host %q names no device; the lab has to know what to call it", port, host)
		return
	}
	c.take(path+".port", host+"/"+p.Device, owner)
}

// take marks a device as connected to owner, once.
func (c *checker) take(path, device, owner string) {
	if other, ok := c.taken[device]; ok {
		c.faultIn(path, "%s is connected to %s already", device, other)
		return
	}
	c.taken[device] = owner
}

// nesting refuses hosts that would, in the end, run on themselves.
func (c *checker) nesting() {
	for i := range c.s.Hosts {
		name := c.s.Hosts[i].Name
		if c.runsOn(name, name, len(c.s.Hosts)) {
			c.faultIn(fmt.Sprintf("hosts[%d].nics", i), "host %q runs on itself", name)
		}
	}
}

func (c *checker) runsOn(host, on string, depth int) bool {
	h := c.s.Host(host)
	if h == nil || depth == 0 {
		return false
	}
	for _, n := range h.NICs {
		if n.Host == on || c.runsOn(n.Host, on, depth-1) {
			return true
		}
	}
	return false
}

func (c *checker) vm(i int) {
	path, v := fmt.Sprintf("vms[%d]", i), &c.s.VMs[i]
	if v.Kind != Namespace && v.Kind != QEMU {
		c.faultIn(path+".kind", "%q is no kind of VM; write namespace or qemu", v.Kind)
	}
	switch {
	case v.NIC != "" && v.Kind != QEMU:
		c.faultIn(path+".nic", "only a VM of kind qemu has an adapter model")
	case v.NIC != "" && v.NIC != VirtioNet && v.NIC != E1000:
		c.faultIn(path+".nic", "%q is no adapter model; write virtio-net or e1000", v.NIC)
	}
	switch {
	case v.Kind == QEMU && (v.Queues < 0 || v.Queues > MaxMachineQueues):
		c.faultIn(path+".queues", "%d queues: a VM of kind qemu has 1–%d", v.Queues, MaxMachineQueues)
	case v.Kind == QEMU && v.Queues > 1 && v.NIC != VirtioNet:
		c.faultIn(path+".queues", "%d queues: an adapter of the model %s has one", v.Queues, v.NIC)
	case v.Kind != QEMU && (v.Queues < 0 || v.Queues > MaxTapQueues):
		c.faultIn(path+".queues", "%d queues: a tap has 1–%d", v.Queues, MaxTapQueues)
	}
	c.mtu(path+".mtu", v.MTU)
	c.mac(path+".mac", v.MAC)
	if v.OfController() {
		c.inGroup(path, v)
	} else {
		c.onPort(path, v.Host, v.Port, v.Name)
	}
	if v.Gateway.IsValid() && !within(v.Gateway, v.Addresses) {
		c.faultIn(path+".gateway", "gateway %s is in none of the VM's networks", v.Gateway)
	}
	c.addresses(path+".addresses", v.Addresses)
}

func within(a netip.Addr, nets []netip.Prefix) bool {
	for _, n := range nets {
		if n.Contains(a) {
			return true
		}
	}
	return false
}

// addresses refuses addresses that stand for a whole network.
func (c *checker) addresses(path string, list []netip.Prefix) {
	for i, a := range list {
		if a.IsValid() && !a.IsSingleIP() && a.Addr() == a.Masked().Addr() {
			c.faultIn(fmt.Sprintf("%s[%d]", path, i), "%s is a network; write an address in it, such as %s/%d",
				a, a.Addr().Next(), a.Bits())
		}
	}
}

func (c *checker) mtu(path string, mtu int) {
	if mtu < 68 || mtu > 65535 {
		c.faultIn(path, "MTU %d is out of range; write 68–65535", mtu)
	}
}

func (c *checker) mac(path string, m plan.MAC) {
	if m.IsGroup() {
		c.faultIn(path, "%s is a group address; an adapter has an individual one, such as 02:00:00:00:01:01", m)
	}
}
