package agent

import (
	"fmt"
	"slices"

	"heddle/internal/agent/state"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// layers are the two sources of ports: the file, and commands.
type layers struct {
	file      *spec.Config
	ports     []spec.Port
	overrides map[string]state.Override
	// defined is what the controllers' definition sets for the static ports that run-time ports are, by these names.
	defined map[string]spec.Policy
	uplinks []state.Maintenance
}

// merge makes the configuration to activate: the file's, with the overrides on its ports, and the ports connected by
// command. What commands made and does not fit the file is left out; the faults, without line numbers, say what that
// is.
func (l layers) merge() (*spec.Config, spec.Faults) {
	base := *l.file
	base.Switches = l.maintained(base.Switches)
	if len(l.ports)+len(l.overrides) == 0 {
		return &base, nil
	}
	base.Ports = make([]spec.Port, 0, len(l.file.Ports))
	order := make(map[string]int, len(l.file.Ports)+len(l.ports))
	var second []spec.Port // to be checked against the file
	for i, p := range l.file.Ports {
		order[p.Name] = i
		if o, ok := l.overrides[p.Name]; ok {
			second = append(second, o.On(p))
		} else {
			base.Ports = append(base.Ports, p)
		}
	}
	for i, p := range l.ports {
		if _, declared := order[p.Name]; declared {
			return l.withoutRunTimePort(i)
		}
		order[p.Name] = len(l.file.Ports) + i
		p.Policy = p.Policy.Over(l.defined[p.Name])
		second = append(second, l.overrides[p.Name].On(p))
	}
	cfg, faults := spec.WithPorts(&base, second)
	cfg.Ports = append(cfg.Ports, l.lost(cfg.Ports)...)
	slices.SortStableFunc(cfg.Ports, func(a, b spec.Port) int { return order[a.Name] - order[b.Name] })
	return cfg, faults
}

// maintained returns the file's switches with the uplinks that commands have drained or blocked.
func (l layers) maintained(switches []spec.Switch) []spec.Switch {
	for _, m := range l.uplinks {
		i := slices.IndexFunc(switches, func(s spec.Switch) bool { return s.Name == m.ID.Switch })
		if i < 0 {
			continue
		}
		k := slices.IndexFunc(switches[i].Uplinks, func(u spec.Uplink) bool { return u.Name == m.ID.Name })
		if k < 0 {
			continue
		}
		switches = slices.Clone(switches)
		sw := &switches[i]
		sw.Uplinks = slices.Clone(sw.Uplinks)
		sw.Uplinks[k].Drained, sw.Uplinks[k].Blocked = true, sw.Uplinks[k].Blocked || m.Blocked
	}
	return switches
}

// withoutRunTimePort merges without a run-time port that the file declares too, and adds a fault about it.
func (l layers) withoutRunTimePort(i int) (*spec.Config, spec.Faults) {
	name := l.ports[i].Name
	l.ports = slices.Delete(slices.Clone(l.ports), i, i+1)
	cfg, faults := l.merge()
	return cfg, append(spec.Faults{{Path: "ports[" + name + "].name", Value: name, Message: fmt.Sprintf(
		"the file declares this port, and one of this name was connected by command: disconnect that (heddle port "+
			"disconnect %s), or take it out of the file", printable.ShellWord(name))}}, faults...)
}

// lost returns the file's ports that are missing because their override does not fit: they count as the file declares
// them.
func (l layers) lost(have []spec.Port) []spec.Port {
	there := make(map[string]bool, len(have))
	for _, p := range have {
		there[p.Name] = true
	}
	var lost []spec.Port
	for _, p := range l.file.Ports {
		if !there[p.Name] {
			lost = append(lost, p)
		}
	}
	return lost
}
