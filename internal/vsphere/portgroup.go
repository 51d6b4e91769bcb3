package vsphere

import (
	"fmt"
	"slices"

	"heddle/internal/spec"
)

// group adds a port group.
func (s *translated) group(g *object, called *names) {
	c := &g.Config
	a := s.about.to.on("port group", s.from.named()+"/"+g.named())
	to := spec.PortGroup{Name: called.fresh(g.named())}
	s.renamed(a, g.named(), to.Name)
	s.groups[c.Key], s.groups[g.Self.Value] = to.Name, to.Name
	s.binding(a, c, &to)
	overrides(a, &c.Policy, &to.Overrides)
	if c.Description != "" {
		a.absent("description", c.Description, "keep it as a comment in your own file")
	}
	if c.ResourcePool != "" && c.ResourcePool != "-1" {
		a.absent("network resource pool", c.ResourcePool, "queues of the physical switch, or of the host's "+
			"cards (tc), have to do it")
	}
	if c.DefaultPortConfig != nil {
		t := settings{switchOf: s, about: a, from: c.DefaultPortConfig}
		t.all(&to.Policy)
	}
	if c.SegmentID != "" || c.LogicalSwitchUUID != "" || c.BackingType == "nsx" {
		to.Blocked = ptr(true)
		a.changed("NSX segment", c.SegmentID, "the port group is blocked: give it overlay: {vni: N}, and its switch a "+
			"tunnel, then remove blocked: true")
	}
	s.to.PortGroups = append(s.to.PortGroups, to)
}

// binding says whose the port group's ports are.
func (s *translated) binding(a about, c *config, to *spec.PortGroup) {
	switch c.Type {
	case "earlyBinding":
		to.Binding = spec.Static
		if c.AutoExpand == nil || *c.AutoExpand {
			to.Binding = spec.Elastic
		}
		to.Ports.Number = c.NumPorts
		if n := min(max(c.NumPorts, 1), spec.MaxStaticPorts); n != c.NumPorts {
			to.Ports.Number = n
			a.changed("number of ports", fmt.Sprint(c.NumPorts), fmt.Sprintf("it is %d", n))
		}
	case "lateBinding":
		to.Binding = spec.Ephemeral
		a.changed("port binding", "dynamic", "ports are ephemeral: made when a guest connects")
	case "", "ephemeral":
		to.Binding = spec.Ephemeral
	default:
		a.changed("port binding", c.Type, "ports are ephemeral: this kind is not known")
	}
}

func overrides(a about, p *groupPolicy, to *spec.Overrides) {
	if p.Block != nil && !*p.Block {
		to.Blocked = ptr(false)
	}
	if p.ResetAtDisconnect != nil && !*p.ResetAtDisconnect {
		to.ResetAtDisconnect = ptr(false)
	}
	to.VLAN, to.Teaming, to.Monitoring = p.VLAN, p.Teaming, p.IPFIX
	to.Security = p.Security || p.MACManagement
	const nothing = "there is nothing that a port could set"
	if p.Shaping {
		a.absent("override of traffic shaping", "allowed", nothing)
	}
	if p.NetworkResourcePool {
		a.absent("override of the network resource pool", "allowed", nothing)
	}
	if p.TrafficFilter {
		a.absent("override of traffic filtering and marking", "allowed", nothing)
	}
}

// uplinkGroup takes what the port group of the uplinks says: the VLANs that they carry, and whether they are metered.
// Uplinks of a LAG that has VLANs of its own keep these.
func (s *translated) uplinkGroup(g *object) {
	f := g.Config.DefaultPortConfig
	if f == nil {
		return
	}
	a := s.about.to.on("uplink port group", s.from.named()+"/"+g.named())
	var p spec.Policy
	t := settings{switchOf: s, about: a, from: f}
	t.vlan(&p)
	t.others()
	if l := f.LacpPolicy; l != nil && l.Enable != nil && l.Enable.Value != nil && *l.Enable.Value {
		a.absent("LACP of the uplink port group (basic LACP)", "enabled", "add a LAG of all uplinks to lags, and make "+
			"it the only active one in teaming")
	}
	for i := range s.to.Uplinks {
		u := &s.to.Uplinks[i]
		if p.VLAN != nil && carriesLess(p.VLAN.Trunk) && len(u.VLANs) == 0 {
			u.VLANs = p.VLAN.Trunk
		}
		if on := own(f.IpfixEnabled, false, false); on != nil && *on {
			u.Monitoring.IPFIX = on
		}
		if on := own(f.Blocked, false, false); on != nil && *on {
			u.Blocked = true
		}
	}
}

// carriesLess reports whether a trunk carries less than an uplink does by default.
func carriesLess(trunk []string) bool {
	return len(trunk) > 0 && !slices.Equal(trunk, []string{"0-4094"})
}
