package state

import (
	"slices"

	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Given is the device that the run-time port of a VM was given when it was connected. The port has that device and no
// later one of its name: names of taps are given again, and the next one may be another VM's.
type Given struct {
	ID plan.PortID `json:"id"`
	// Index is the device's ifindex; 0 while no device has had the name since the port was connected.
	Index uint32 `json:"ifindex,omitzero"`
	// ByController: a controller has announced the guest, which knows the host's devices by their names alone.
	ByController bool `json:"byController,omitzero"`
}

// GivenTo returns the device that a VM's port was given, nil where nobody has connected it in this place.
func (s *Devices) GivenTo(id plan.PortID) *Given {
	for i := range s.Given {
		if s.Given[i].ID == id {
			return &s.Given[i]
		}
	}
	return nil
}

// Give records the device of a VM's port. The list is replaced, so that a caller that holds the earlier one can return
// to it.
func (s *Devices) Give(g Given) { s.Given = append(s.givenBut(g.ID), g) }

// DropGiven forgets the device of a port: it has none until it is connected again.
func (s *Devices) DropGiven(id plan.PortID) { s.Given = s.givenBut(id) }

func (s *Devices) givenBut(id plan.PortID) []Given {
	return slices.DeleteFunc(slices.Clone(s.Given), func(g Given) bool { return g.ID == id })
}

// keepGiven forgets the devices of ports that are gone.
func (s *Devices) keepGiven(ports []spec.Port) {
	if len(s.Given) == 0 {
		return
	}
	there := make(map[plan.PortID]bool, len(ports))
	for _, p := range ports {
		there[plan.PortID{Switch: p.Switch, Name: p.Name}] = true
	}
	if slices.ContainsFunc(s.Given, func(g Given) bool { return !there[g.ID] }) {
		s.Given = slices.DeleteFunc(slices.Clone(s.Given), func(g Given) bool { return !there[g.ID] })
	}
}

// GiveAll replaces what is recorded of the devices that VMs' ports have: it is done for all at once, since a thousand
// ports may get their devices in one change. ports are those that commands connected: what is recorded of others is
// forgotten.
func (s *Devices) GiveAll(devices map[plan.PortID]uint32, ports []spec.Port) {
	rest, changed := make(map[plan.PortID]uint32, len(devices)), false
	for id, index := range devices {
		rest[id] = index
	}
	list := make([]Given, 0, len(s.Given)+len(devices))
	for _, g := range s.Given {
		if index, has := rest[g.ID]; has {
			changed = changed || g.Index != index
			g.Index = index
			delete(rest, g.ID)
		}
		list = append(list, g)
	}
	for _, p := range ports {
		id := plan.PortID{Switch: p.Switch, Name: p.Name}
		if index, has := rest[id]; has {
			list, changed = append(list, Given{ID: id, Index: index}), true
		}
	}
	if changed {
		s.Given = list
	}
	s.keepGiven(ports)
}
