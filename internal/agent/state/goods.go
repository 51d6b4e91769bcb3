package state

import (
	"slices"
	"time"

	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Goods is what came with a port from another host (S79), or is about to leave with it. The list is replaced and never
// changed in place.
type Goods struct {
	ID plan.PortID `json:"id"`
	// Number is that of the copy; 0 where none has come.
	Number uint64 `json:"number,omitzero"`
	// At is when the copy came. Complete: the source counted nothing after it.
	At       time.Time `json:"at,omitzero"`
	Complete bool      `json:"complete,omitzero"`
	// Base are the counters from other hosts.
	Base observe.Base `json:"base,omitzero"`
	// Left is what this host itself had counted when the port went away.
	Left observe.Counters `json:"left,omitzero"`
	// Storm is the used-up allowance of storm control that the port could not be given yet. MACs says how many learned
	// MACs are in the file beside the state.
	Storm []observe.Spent `json:"storm,omitzero"`
	MACs  int             `json:"macs,omitzero"`
	// Parts are the parts of the agent for which there is something in that file.
	Parts []string `json:"parts,omitempty"`
	// Own is what the port had set for itself here before the first copy.
	Own *OwnPolicy `json:"own,omitzero"`
	// LeftOut says what of the port's settings does not apply on this host, for people.
	LeftOut []string `json:"leftOut,omitzero"`
	// Installed: the guest runs here, and the port has got everything.
	Installed bool `json:"installed,omitzero"`
}

// OwnPolicy is what a port sets for itself, and what a command has set about blocking it.
type OwnPolicy struct {
	Policy  spec.Policy `json:"policy,omitzero"`
	Blocked *bool       `json:"blocked,omitzero"`
}

// Lacks is the time since which counts of the source are missing, because it could not send its last copy; the zero
// time where none are.
func (g *Goods) Lacks() time.Time {
	if g == nil || !g.Installed || g.Complete {
		return time.Time{}
	}
	return g.At
}

// GoodsOf is what came with a port, nil for nothing.
func GoodsOf(list []Goods, id plan.PortID) *Goods {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// GoodsBut is a new list without what came with a port.
func GoodsBut(list []Goods, id plan.PortID) []Goods {
	return slices.DeleteFunc(slices.Clone(list), func(g Goods) bool { return g.ID == id })
}

// GoodsOf is what came with a port, nil for nothing.
func (s *State) GoodsOf(id plan.PortID) *Goods { return GoodsOf(s.Goods, id) }

// DropGoods forgets what came with a port.
func (s *State) DropGoods(id plan.PortID) { s.Goods = GoodsBut(s.Goods, id) }

// Bases are the counters of ports from before this host began to count for their present connection.
func (s *State) Bases() map[plan.PortID]observe.Base {
	all := map[plan.PortID]observe.Base{}
	for i := range s.NICs {
		if n := &s.NICs[i]; n.ID != "" && s.Connected(n) {
			all[plan.PortID{Switch: n.Switch, Name: n.Port}] = observe.Base{Counters: n.Counters}
		}
	}
	for i := range s.Goods {
		if g := &s.Goods[i]; g.Number > 0 {
			all[g.ID] = g.Base
		}
	}
	return all
}

// BaseOf is Bases for one port.
func (s *State) BaseOf(id plan.PortID) observe.Base {
	if g := s.GoodsOf(id); g != nil && g.Number > 0 {
		return g.Base
	}
	if n := s.NICOf(id.Name); n != nil && n.ID != "" && n.Switch == id.Switch {
		return observe.Base{Counters: n.Counters}
	}
	return observe.Base{}
}
