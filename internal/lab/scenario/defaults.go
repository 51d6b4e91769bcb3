package scenario

import (
	"crypto/sha256"
	"net/netip"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// defaultMTU is that of Ethernet, in bytes of layer 3.
const defaultMTU = 1500

func (s *Scenario) setDefaults() {
	for i := range s.Hosts {
		for j := range s.Hosts[i].NICs {
			n := &s.Hosts[i].NICs[j]
			n.MTU = orDefault(n.MTU, defaultMTU)
			n.MAC = s.adapterMAC(n.MAC, n.Host, n.Port, s.Hosts[i].Name+"/"+n.Device)
		}
	}
	for i := range s.VMs {
		v := &s.VMs[i]
		v.Kind = orDefault(v.Kind, Namespace)
		v.Port = orDefault(v.Port, v.Name)
		if v.OfController() {
			v.Device = orDefault(v.Device, "vm-"+v.Name)
		}
		v.MTU = orDefault(v.MTU, defaultMTU)
		v.MAC = s.adapterMAC(v.MAC, v.Host, v.Port, v.Name)
		if v.Kind == QEMU {
			v.NIC = orDefault(v.NIC, VirtioNet)
			v.Queues = orDefault(v.Queues, 1)
		}
		if v.Queues > 0 {
			s.setPortMAC(v)
		}
	}
	for i := range s.Switches {
		s.Switches[i].Kind = orDefault(s.Switches[i].Kind, Bridge)
	}
	for i := range s.Links {
		s.Links[i].MTU = orDefault(s.Links[i].MTU, defaultMTU)
	}
	for i := range s.Routers {
		for j := range s.Routers[i].Interfaces {
			f := &s.Routers[i].Interfaces[j]
			f.MAC = s.adapterMAC(f.MAC, f.Host, f.Port, s.Routers[i].Name+"/"+f.Device)
			if f.OnPort() {
				f.MTU = orDefault(f.MTU, defaultMTU)
			}
		}
	}
}

// setPortMAC writes a VM's MAC into the configuration of its port, because the agent cannot see it behind a tap.
func (s *Scenario) setPortMAC(v *VM) {
	if p := s.port(v.Host, v.Port); p != nil && p.MAC == "" {
		p.MAC = v.MAC.String()
	}
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// adapterMAC is the MAC in the file, else the port's configured MAC, else one derived from the adapter's name.
func (s *Scenario) adapterMAC(given plan.MAC, host, port, name string) plan.MAC {
	if !given.IsZero() {
		return given
	}
	if p := s.port(host, port); p != nil && p.MAC != "" {
		if m, err := plan.ParseMAC(p.MAC); err == nil {
			return m
		}
	}
	return madeUpMAC(name)
}

// madeUpMAC is a locally administered unicast address that stays the same from run to run.
func madeUpMAC(name string) plan.MAC {
	h := sha256.Sum256([]byte(name))
	return plan.MAC{0x02, h[0], h[1], h[2], h[3], h[4]}
}

// Host finds a host by name, nil when there is none.
func (s *Scenario) Host(name string) *Host {
	for i := range s.Hosts {
		if s.Hosts[i].Name == name {
			return &s.Hosts[i]
		}
	}
	return nil
}

// port finds a port of a host's configuration, nil when there is none.
func (s *Scenario) port(host, name string) *spec.Port {
	if h := s.Host(host); h != nil {
		return Port(h.Config, name)
	}
	return nil
}

// Port finds a port in a configuration by name, nil when there is none.
func Port(c *spec.Config, name string) *spec.Port {
	if c == nil {
		return nil
	}
	for i := range c.Ports {
		if c.Ports[i].Name == name {
			return &c.Ports[i]
		}
	}
	return nil
}

// ValidName reports whether name can be a lab's or a node's.
func ValidName(name string) bool { return namePattern.MatchString(name) }

// Addresses are the addresses of the host's own interfaces.
func (h *Host) Addresses() []netip.Prefix {
	var all []netip.Prefix
	for i := range h.Config.Ports {
		for _, a := range h.Config.Ports[i].Addresses {
			if p, err := netip.ParsePrefix(a); err == nil { // a wrong one is a fault of the configuration
				all = append(all, p)
			}
		}
	}
	return all
}

// Addresses are the addresses of all interfaces of the router.
func (r *Router) Addresses() []netip.Prefix {
	var all []netip.Prefix
	for _, f := range r.Interfaces {
		all = append(all, f.Addresses...)
	}
	return all
}

// LinkMAC is the MAC of the device at the end of a link; it is the same in every run.
func (s *Scenario) LinkMAC(e End) plan.MAC {
	if r := s.router(e.Node); r != nil {
		for _, f := range r.Interfaces {
			if f.Device == e.Device {
				return f.MAC
			}
		}
	}
	return madeUpMAC(e.String())
}

// PortWithDevice finds the port of a configuration that a device belongs to, nil when there is none.
func PortWithDevice(c *spec.Config, device string) *spec.Port {
	for i := range c.Ports {
		if c.Ports[i].ActualRole() != spec.Host && c.Ports[i].Device == device {
			return &c.Ports[i]
		}
	}
	return nil
}
