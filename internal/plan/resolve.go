package plan

import (
	"fmt"
	"slices"
	"strings"

	"heddle/internal/spec"
)

// Resolve makes the plan of a valid configuration: every port's effective policy, field by field from the nearest level
// that sets it (S8, S9, S11, D3). numbers are the numbers of ports and uplinks given so far, also of those that are
// gone and whose numbers stay reserved; ports without one get the lowest free numbers from 1 in the order of the file,
// uplinks those after them. The error is spec.Faults if cfg is not valid, or says which numbers are given twice.
func Resolve(cfg *spec.Config, numbers map[PortID]uint32) (*Plan, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return ResolveValid(cfg, numbers)
}

// ResolveValid is Resolve for a configuration that is known to be valid, such as the result of spec.Parse or
// spec.WithPorts: with a thousand ports, validating takes as long as everything else. Ports with the same effective
// policy share it.
func ResolveValid(cfg *spec.Config, numbers map[PortID]uint32) (*Plan, error) {
	next, err := freeNumbers(numbers)
	if err != nil {
		return nil, err
	}
	p := &Plan{Switches: make([]*Switch, len(cfg.Switches))}
	byName := make(map[string]int, len(cfg.Switches))
	groups := make([]groupPolicies, len(cfg.Switches))
	for i := range cfg.Switches {
		p.Switches[i] = resolveSwitch(&cfg.Switches[i])
		byName[cfg.Switches[i].Name] = i
		groups[i] = groupPoliciesOf(&cfg.Switches[i])
	}
	for i := range cfg.Ports {
		sp := &cfg.Ports[i]
		k := byName[sp.Switch]
		port := resolvePort(&cfg.Switches[k], groups[k], sp)
		port.Number = numberOf(port.ID, numbers, next)
		p.Switches[k].Ports = append(p.Switches[k].Ports, port)
	}
	for _, sw := range p.Switches {
		for _, u := range sw.Uplinks {
			u.Number = numberOf(u.ID, numbers, next)
		}
		if sw.Tunnel != nil {
			sw.Tunnel.Number = numberOf(sw.Tunnel.ID, numbers, next)
		}
	}
	p.SetMACTable(cfg.Host.ActualMACTable())
	return p, nil
}

// numberOf returns the number given before, or the next free one.
func numberOf(id PortID, given map[PortID]uint32, next func() uint32) uint32 {
	if n, ok := given[id]; ok {
		return n
	}
	return next()
}

// freeNumbers gives out the numbers from 1 that are not in use.
func freeNumbers(numbers map[PortID]uint32) (next func() uint32, err error) {
	used := make(map[uint32]PortID, len(numbers))
	for id, n := range numbers {
		if n == 0 {
			return nil, fmt.Errorf("port %s has the number 0: numbers start at 1", id)
		}
		if other, dup := used[n]; dup {
			return nil, fmt.Errorf("ports %s and %s have the same number %d: a number is given once",
				min(id.String(), other.String()), max(id.String(), other.String()), n)
		}
		used[n] = id
	}
	var last uint32
	return func() uint32 {
		for last++; ; last++ {
			if _, taken := used[last]; !taken {
				return last
			}
		}
	}, nil
}

func resolveSwitch(s *spec.Switch) *Switch {
	sw := &Switch{
		Name:                   s.Name,
		Kind:                   s.ActualKind(),
		MTU:                    s.ActualMTU(),
		ReversePath:            or(s.Checks.ReversePath, true),
		ReversePathPromiscuous: or(s.Checks.ReversePathPromiscuous, true),
		BlockGuestBPDU:         or(s.Checks.BlockGuestBPDU, true),
		UpDelay:                s.ActualUpDelay(),
		LLDP:                   orText(s.Discovery.LLDP, spec.LLDPListen),
		HealthCheck:            s.HealthCheck,
		IPFIX:                  resolveIPFIX(&s.IPFIX),
	}
	for i := range s.LAGs {
		g := &s.LAGs[i]
		sw.LAGs = append(sw.LAGs, &LAG{
			Name: g.Name, Uplinks: slices.Clone(g.Uplinks), Mode: orText(g.Mode, spec.LACPActive),
			Timeout: orText(g.Timeout, spec.LACPSlow), Hash: orText(g.Hash, spec.HashIPPortVLAN),
			Fallback: orText(g.Fallback, spec.FallbackSingle),
		})
	}
	for i := range s.Uplinks {
		u := &s.Uplinks[i]
		up := &Uplink{ID: PortID{s.Name, u.Name}, Device: u.Device, VLANs: AllVLANs(), Blocked: u.Blocked,
			Drained: u.Drained, Monitoring: uplinkMonitoring(s, u.Monitoring)}
		if len(u.VLANs) > 0 {
			up.VLANs = vlanSet(u.VLANs)
		}
		sw.Uplinks = append(sw.Uplinks, up)
	}
	sw.Tunnel = resolveTunnel(s)
	return sw
}

func or[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func orText[T ~string](s, otherwise T) T {
	if s == "" {
		return otherwise
	}
	return s
}

// vlanSet returns the union of valid ids and ranges.
func vlanSet(list []string) VLANSet {
	var set VLANSet
	for _, s := range list {
		if r, err := spec.ParseVLANRange(s); err == nil {
			set.AddRange(r.Lo, r.Hi)
		}
	}
	return set
}

// groupPolicies are the policies, by port group, of a port that sets nothing for itself.
type groupPolicies map[string]struct {
	levels    []level
	effective *Effective
	vni       uint32
}

func groupPoliciesOf(s *spec.Switch) groupPolicies {
	all := make(groupPolicies, len(s.PortGroups))
	for i := range s.PortGroups {
		g := all[s.PortGroups[i].Name]
		g.levels = []level{{FromSwitch, &s.Defaults}, {FromPortGroup, &s.PortGroups[i].Policy}}
		g.effective = effective(s, g.levels)
		g.vni = s.PortGroups[i].VNI()
		all[s.PortGroups[i].Name] = g
	}
	return all
}

// OfGroup is the effective policy of a port that sets nothing for itself, in a port group of a valid configuration; nil
// where there is no such port group.
func OfGroup(cfg *spec.Config, sw, group string) *Effective {
	for i := range cfg.Switches {
		if s := &cfg.Switches[i]; s.Name == sw {
			return groupPoliciesOf(s)[group].effective
		}
	}
	return nil
}

// OfGroups are the effective policies of a port that sets nothing for itself, in each port group of a switch that has
// VLANs: those with overlay are left out.
func OfGroups(cfg *spec.Config, sw string) (list []*Effective) {
	for i := range cfg.Switches {
		s := &cfg.Switches[i]
		if s.Name != sw {
			continue
		}
		all := groupPoliciesOf(s)
		for k := range s.PortGroups {
			if g := all[s.PortGroups[k].Name]; g.vni == 0 {
				list = append(list, g.effective)
			}
		}
	}
	return list
}

func resolvePort(s *spec.Switch, groups groupPolicies, sp *spec.Port) *Port {
	p := &Port{
		ID:        PortID{s.Name, sp.Name},
		PortGroup: sp.PortGroup,
		Role:      sp.ActualRole(),
		Owner:     sp.ActualOwner(),
		Domain:    strings.ToLower(sp.Domain),
		Device:    sp.ActualDevice(),
		TxUplink:  sp.TxUplink,
		Addresses: slices.Clone(sp.Addresses),
		MTU:       sp.MTU,
		Gateway:   sp.Gateway,
		Metric:    sp.Metric,
		Table:     sp.Table,
		Monitor:   sp.Monitor,
	}
	if mac, err := ParseMAC(sp.MAC); err == nil {
		p.InitialMAC = mac
	}
	if p.Role == spec.Host && p.MTU == 0 {
		p.MTU = s.ActualMTU()
	}
	g := groups[sp.PortGroup]
	p.Policy, p.VNI = g.effective, g.vni
	if sp.Policy != (spec.Policy{}) {
		p.Policy = effective(s, append(g.levels[:len(g.levels):len(g.levels)], level{FromPort, &sp.Policy}))
	}
	return p
}
