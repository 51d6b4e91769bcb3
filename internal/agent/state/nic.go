package state

import (
	"slices"

	"heddle/internal/observe"
	"heddle/internal/spec"
)

// NIC is an adapter of a VM, by the VM's UUID and the adapter's name: it is that on whatever host the VM runs, and
// whatever its port is called. One with a static port is remembered while it is not connected.
type NIC struct {
	VM      string `json:"vm"`
	Adapter string `json:"adapter"`
	// Port is the name of its port, present or last.
	Port      string `json:"port"`
	Switch    string `json:"switch"`
	PortGroup string `json:"portGroup"`
	// ID is the static port's; "" for an ephemeral port, and for a conflict port without one.
	ID  string `json:"id,omitzero"`
	MAC string `json:"mac,omitzero"`
	// Policy is what the definition sets for the port.
	Policy spec.Policy `json:"policy,omitzero"`
	// Bound: the controllers say that the port is bound on this host.
	Bound bool `json:"bound,omitzero"`
	// Conflict says why it is a conflict port; "" for none. Rival says that the adapter is used on another host too,
	// Rivals are the ids of those hosts.
	Conflict string   `json:"conflict,omitzero"`
	Rival    string   `json:"rival,omitzero"`
	Rivals   []string `json:"rivals,omitzero"`
	// Counters are those of its connections before the present one.
	Counters observe.Counters `json:"counters,omitzero"`
}

// Trouble says what is wrong with the binding; "" for nothing.
func (n *NIC) Trouble() string {
	if n.Rival != "" {
		return n.Rival
	}
	return n.Conflict
}

// NIC is what is remembered of an adapter, nil for nothing.
func (s *State) NIC(vm, adapter string) *NIC {
	for i := range s.NICs {
		if s.NICs[i].VM == vm && s.NICs[i].Adapter == adapter {
			return &s.NICs[i]
		}
	}
	return nil
}

// NICOf is the adapter that a run-time port belongs to, nil where nobody said.
func (s *State) NICOf(port string) *NIC {
	i := slices.IndexFunc(s.NICs, func(n NIC) bool { return n.Port == port && s.Connected(&n) })
	if i < 0 {
		return nil
	}
	return &s.NICs[i]
}

// ConnectedNICs are the adapters whose ports are connected.
func (s *State) ConnectedNICs() (list []*NIC) {
	ports := make(map[string]*spec.Port, len(s.Ports))
	for i := range s.Ports {
		ports[s.Ports[i].Name] = &s.Ports[i]
	}
	for i := range s.NICs {
		n := &s.NICs[i]
		if p := ports[n.Port]; p != nil && p.Switch == n.Switch && p.PortGroup == n.PortGroup {
			list = append(list, n)
		}
	}
	return list
}

// Connected reports whether an adapter's port is connected.
func (s *State) Connected(n *NIC) bool {
	return slices.ContainsFunc(s.Ports, func(p spec.Port) bool {
		return p.Name == n.Port && p.Switch == n.Switch && p.PortGroup == n.PortGroup
	})
}

// PutNIC remembers an adapter in place of what was remembered of it. At most most are remembered, those that are
// connected first.
func (s *State) PutNIC(n NIC, most int) {
	list := slices.DeleteFunc(slices.Clone(s.NICs), func(o NIC) bool { return o.VM == n.VM && o.Adapter == n.Adapter })
	list = append(list, n)
	for i := 0; len(list) > most && i < len(list); {
		if s.Connected(&list[i]) {
			i++
			continue
		}
		list = slices.Delete(list, i, i+1)
	}
	s.NICs = list
}

// NameIs records that a run-time port of that name is the adapter's, nil for nobody's. Adapters whose ports had the
// name before are not connected by it: they keep the static ports that they have, and are forgotten without one.
func (s *State) NameIs(port string, of *NIC) {
	var list []NIC
	for _, n := range s.NICs {
		if n.Port == port && (of == nil || n.VM != of.VM || n.Adapter != of.Adapter) {
			if n.Port = ""; !n.Keeps() {
				continue
			}
		}
		list = append(list, n)
	}
	s.NICs = list
}

// Keeps reports whether the adapter has a static port that stays its own while the VM is off.
func (n *NIC) Keeps() bool { return n.ID != "" && (n.Conflict == "" || n.Bound) }

// DropNIC forgets an adapter.
func (s *State) DropNIC(vm, adapter string) {
	s.NICs = slices.DeleteFunc(slices.Clone(s.NICs), func(o NIC) bool { return o.VM == vm && o.Adapter == adapter })
}
