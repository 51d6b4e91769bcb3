package agent

import (
	"heddle/internal/agent/state"
	"heddle/internal/spec"
)

// usesOf are the port groups of the ports that were connected by command.
func usesOf(ports []spec.Port, overrides map[string]state.Override) []state.Use {
	list := make([]state.Use, len(ports))
	for i, p := range ports {
		p = overrides[p.Name].On(p)
		list[i] = state.Use{Port: p.Name, Group: p.Switch + "/" + p.PortGroup}
	}
	return list
}
