package dataplane

import (
	"fmt"
	"iter"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// slots says where in the tables each port, uplink and switch lives. A slot is kept as long as its port is in the plan; it
// is free again only after no run of the program can still use it.
type slots struct {
	ports    map[plan.PortID]uint32
	switches map[string]uint8
	// leaving are slots whose port is gone and whose flows have not been drained.
	leaving map[uint32]bool
}

func newSlots() *slots {
	return &slots{ports: map[plan.PortID]uint32{}, switches: map[string]uint8{}, leaving: map[uint32]bool{}}
}

// assignment is what an assign call changed.
type assignment struct {
	newPorts    map[plan.PortID]uint32
	newSwitches map[string]uint8
	goneSlots   map[plan.PortID]uint32
	goneIDs     map[string]uint8
}

// assign gives every port, uplink and switch of the plan a slot, and names those that left. Nothing changes on an
// error.
func (s *slots) assign(p *plan.Plan) (*assignment, error) {
	a := &assignment{map[plan.PortID]uint32{}, map[string]uint8{}, map[plan.PortID]uint32{}, map[string]uint8{}}
	if s.has(p) {
		return a, nil
	}
	wantPorts, wantSwitches := wanted(p)
	var usedSlots [abi.MaxPorts + 1]bool
	usedSlots[0] = true
	for slot := range s.leaving {
		usedSlots[slot] = true
	}
	usedIDs := map[uint8]bool{}
	for id, slot := range s.ports {
		usedSlots[slot] = true
		if !wantPorts[id] {
			a.goneSlots[id] = slot
		}
	}
	for name, id := range s.switches {
		usedIDs[id] = true
		if !wantSwitches[name] {
			a.goneIDs[name] = id
		}
	}
	var nextSlot uint32 = 1
	var nextID uint8
	for _, sw := range p.Switches {
		if _, ok := s.switches[sw.Name]; !ok {
			for usedIDs[nextID] {
				nextID++
			}
			if nextID >= abi.MaxSwitches {
				return nil, fmt.Errorf("switch %s: this host can have at most %d switches, and %d that this change removes are there until it is active: remove them by a change of their own first", sw.Name, abi.MaxSwitches, len(a.goneIDs))
			}
			usedIDs[nextID], a.newSwitches[sw.Name] = true, nextID
		}
		for id := range membersOf(sw) {
			if _, ok := s.ports[id]; ok {
				continue
			}
			for nextSlot < abi.MaxPorts && usedSlots[nextSlot] {
				nextSlot++
			}
			if nextSlot >= abi.MaxPorts {
				return nil, fmt.Errorf("port %s: this host can have at most %d ports and uplinks, and %d that this change removes are there until it is active: remove them by a change of their own first", id, abi.MaxPorts-1, len(a.goneSlots)+len(s.leaving))
			}
			usedSlots[nextSlot], a.newPorts[id] = true, nextSlot
		}
	}
	for id, slot := range a.newPorts {
		s.ports[id] = slot
	}
	for name, id := range a.newSwitches {
		s.switches[name] = id
	}
	return a, nil
}

// has reports whether the members of the plan are just those that have places.
func (s *slots) has(p *plan.Plan) bool {
	if p.Members() != len(s.ports) || len(p.Switches) != len(s.switches) {
		return false
	}
	for _, sw := range p.Switches {
		if _, ok := s.switches[sw.Name]; !ok {
			return false
		}
		for id := range membersOf(sw) {
			if _, ok := s.ports[id]; !ok {
				return false
			}
		}
	}
	return true
}

// release frees the slots of ports that left; call it when no run of the program can use them any more.
func (s *slots) release(a *assignment) {
	for id := range a.goneSlots {
		delete(s.ports, id)
	}
	for name := range a.goneIDs {
		delete(s.switches, name)
	}
}

// undo takes back what assign gave.
func (s *slots) undo(a *assignment) {
	for id := range a.newPorts {
		delete(s.ports, id)
	}
	for name := range a.newSwitches {
		delete(s.switches, name)
	}
}

func wanted(p *plan.Plan) (map[plan.PortID]bool, map[string]bool) {
	ports, switches := make(map[plan.PortID]bool, p.Members()), make(map[string]bool, len(p.Switches))
	for _, sw := range p.Switches {
		switches[sw.Name] = true
		for id := range membersOf(sw) {
			ports[id] = true
		}
	}
	return ports, switches
}

// membersOf are the uplinks and then the ports of a switch.
func membersOf(sw *plan.Switch) iter.Seq[plan.PortID] {
	return func(yield func(plan.PortID) bool) {
		for _, u := range sw.Uplinks {
			if !yield(u.ID) {
				return
			}
		}
		for _, p := range sw.Ports {
			if !yield(p.ID) {
				return
			}
		}
	}
}
