package compile

import (
	"cmp"
	"slices"

	"heddle/internal/observe"
	"heddle/internal/plan"
)

// Shared is a MAC that siblings share, or that a port uses as source although its sibling owns it (S111).
type Shared struct {
	MAC plan.MAC
	// Owners are the ports whose own MAC it is; At is the port to which frames for it go.
	Owners []plan.PortID
	At     plan.PortID
}

// SharedMACs lists the shared MACs of a switch, as the kernel decides about them (docs/reference/frame-rules.md section
// 4).
func SharedMACs(sw *plan.Switch, facts plan.Facts, speakers []observe.Speaker) (list []Shared) {
	own := EffectiveMACs(sw, facts)
	by := map[plan.MAC][]*plan.Port{}
	for i, p := range sw.Ports {
		if f, connected := facts[p.ID]; connected && !own[i].MAC.IsZero() && p.Family() != "" && !f.Waits() {
			by[own[i].MAC] = append(by[own[i].MAC], p)
		}
	}
	for i, p := range sw.Ports {
		owners := by[own[i].MAC]
		if len(owners) == 0 || owners[0] != p {
			continue
		}
		slices.SortStableFunc(owners, func(a, b *plan.Port) int {
			return cmp.Compare(facts[b.ID].Wait, facts[a.ID].Wait)
		})
		if s := whereShared(sw, facts, own[i].MAC, owners, speakers); len(owners) > 1 || s.At != owners[0].ID {
			list = append(list, s)
		}
	}
	return list
}

// whereShared returns the port to which frames for the MAC of these ports go.
func whereShared(sw *plan.Switch, facts plan.Facts, mac plan.MAC, owners []*plan.Port,
	speakers []observe.Speaker) Shared {
	s := Shared{MAC: mac, At: owners[0].ID}
	choices := []plan.PortID{}
	for _, sp := range speakers {
		if p := portOf(sw, sp.Port); sp.Owner == owners[0].ID && sp.MAC == mac && p != nil &&
			p.Family() == owners[0].Family() {
			choices = append(choices, sp.Port)
		}
	}
	for _, p := range owners {
		s.Owners = append(s.Owners, p.ID)
		choices = append(choices, p.ID)
	}
	i := slices.IndexFunc(choices, func(id plan.PortID) bool { return facts[id].Up && !facts[id].Waits() })
	if i >= 0 {
		s.At = choices[i]
	}
	return s
}

func portOf(sw *plan.Switch, id plan.PortID) *plan.Port {
	i := slices.IndexFunc(sw.Ports, func(p *plan.Port) bool { return p.ID == id })
	if i < 0 {
		return nil
	}
	return sw.Ports[i]
}
