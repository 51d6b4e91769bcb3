package compile

import (
	"fmt"
	"iter"
	"maps"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// Slots says which index in the tables each port, uplink and switch has. A port keeps its slot while it is in the plan;
// the slot is free again only when no run of the program can still use it.
type Slots struct {
	Ports    map[plan.PortID]uint32
	Switches map[string]uint8
	// Segments are the numbers of overlay segments: the VLANs that stand for them in the program.
	Segments map[OverlaySegment]uint16
	// Epochs says how often each slot has been given to a port.
	Epochs map[uint32]uint32
	// Leaving are the slots of ports that are gone but whose flows have not been drained yet.
	Leaving map[uint32]bool
}

func NewSlots() *Slots {
	return &Slots{Ports: map[plan.PortID]uint32{}, Switches: map[string]uint8{}, Segments: map[OverlaySegment]uint16{},
		Epochs: map[uint32]uint32{}, Leaving: map[uint32]bool{}}
}

// Assignment is what an Assign call changed.
type Assignment struct {
	NewPorts     map[plan.PortID]uint32
	NewSwitches  map[string]uint8
	NewSegments  map[OverlaySegment]uint16
	GoneSlots    map[plan.PortID]uint32
	GoneIDs      map[string]uint8
	GoneSegments map[OverlaySegment]uint16
}

// Assign gives every port, uplink and switch of the plan a slot, and returns those that left. After an error nothing
// has changed.
func (s *Slots) Assign(p *plan.Plan) (*Assignment, error) {
	a := &Assignment{map[plan.PortID]uint32{}, map[string]uint8{}, map[OverlaySegment]uint16{},
		map[plan.PortID]uint32{}, map[string]uint8{}, map[OverlaySegment]uint16{}}
	if err := s.assignSegments(p, a); err != nil {
		return nil, err
	}
	if s.has(p) {
		maps.Copy(s.Segments, a.NewSegments)
		return a, nil
	}
	wantPorts, wantSwitches := wanted(p)
	var usedSlots [abi.MaxPorts + 1]bool
	usedSlots[0] = true
	for slot := range s.Leaving {
		usedSlots[slot] = true
	}
	usedIDs := map[uint8]bool{}
	for id, slot := range s.Ports {
		usedSlots[slot] = true
		if !wantPorts[id] {
			a.GoneSlots[id] = slot
		}
	}
	for name, id := range s.Switches {
		usedIDs[id] = true
		if !wantSwitches[name] {
			a.GoneIDs[name] = id
		}
	}
	var nextSlot uint32 = 1
	var nextID uint8
	for _, sw := range p.Switches {
		for _, name := range spaces(sw) {
			if _, ok := s.Switches[name]; ok {
				continue
			}
			for usedIDs[nextID] {
				nextID++
			}
			if nextID >= abi.MaxSwitches {
				return nil, fmt.Errorf("switch %s: this host can have at most %d switches (one with a tunnel counts "+
					"twice), and %d that this change removes are there until it is active: remove them by a change of "+
					"their own first", sw.Name, abi.MaxSwitches, len(a.GoneIDs))
			}
			usedIDs[nextID], a.NewSwitches[name] = true, nextID
		}
		for id := range MembersOf(sw) {
			if _, ok := s.Ports[id]; ok {
				continue
			}
			for nextSlot < abi.MaxPorts && usedSlots[nextSlot] {
				nextSlot++
			}
			if nextSlot >= abi.MaxPorts {
				return nil, fmt.Errorf("port %s: this host can have at most %d ports and uplinks, and %d that this "+
					"change removes are there until it is active: remove them by a change of their own first", id,
					abi.MaxPorts-1, len(a.GoneSlots)+len(s.Leaving))
			}
			usedSlots[nextSlot], a.NewPorts[id] = true, nextSlot
		}
	}
	s.give(a)
	return a, nil
}

func (s *Slots) give(a *Assignment) {
	maps.Copy(s.Ports, a.NewPorts)
	for _, slot := range a.NewPorts {
		s.Epochs[slot]++
	}
	maps.Copy(s.Switches, a.NewSwitches)
	maps.Copy(s.Segments, a.NewSegments)
}

// has reports whether exactly the members of the plan have slots.
func (s *Slots) has(p *plan.Plan) bool {
	if p.Members() != len(s.Ports) {
		return false
	}
	names := 0
	for _, sw := range p.Switches {
		for _, name := range spaces(sw) {
			if _, ok := s.Switches[name]; !ok {
				return false
			}
			names++
		}
		for id := range MembersOf(sw) {
			if _, ok := s.Ports[id]; !ok {
				return false
			}
		}
	}
	return names == len(s.Switches)
}

// Release frees the slots of ports that left; call it when no run of the program can use them any more.
func (s *Slots) Release(a *Assignment) {
	for id := range a.GoneSlots {
		delete(s.Ports, id)
	}
	for name := range a.GoneIDs {
		delete(s.Switches, name)
	}
	for seg := range a.GoneSegments {
		delete(s.Segments, seg)
	}
}

// Undo reverts what Assign did.
func (s *Slots) Undo(a *Assignment) {
	for id, slot := range a.NewPorts {
		delete(s.Ports, id)
		s.Epochs[slot]--
	}
	for name := range a.NewSwitches {
		delete(s.Switches, name)
	}
	for seg := range a.NewSegments {
		delete(s.Segments, seg)
	}
}

func wanted(p *plan.Plan) (map[plan.PortID]bool, map[string]bool) {
	ports, switches := make(map[plan.PortID]bool, p.Members()), make(map[string]bool, len(p.Switches))
	for _, sw := range p.Switches {
		for _, name := range spaces(sw) {
			switches[name] = true
		}
		for id := range MembersOf(sw) {
			ports[id] = true
		}
	}
	return ports, switches
}

// MembersOf returns the uplinks, the tunnel and then the ports of a switch.
func MembersOf(sw *plan.Switch) iter.Seq[plan.PortID] {
	return func(yield func(plan.PortID) bool) {
		for _, u := range sw.Uplinks {
			if !yield(u.ID) {
				return
			}
		}
		if sw.Tunnel != nil && !yield(sw.Tunnel.ID) {
			return
		}
		for _, p := range sw.Ports {
			if !yield(p.ID) {
				return
			}
		}
	}
}
