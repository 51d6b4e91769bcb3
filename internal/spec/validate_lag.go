package spec

import (
	"fmt"
	"slices"
	"strconv"
)

// lags checks the LAGs of switch i; from then on teaming lists can use them like uplinks.
func (v *validator) lags(sw at, i int) {
	s := &v.cfg.Switches[i]
	list := sw.field("lags")
	if len(s.LAGs) > 0 && s.Kind == Standard {
		v.fault(list, "", "LACP needs a distributed switch, and %s is a standard one: set kind: distributed on it",
			s.Name)
	}
	memberOf := map[string]string{}
	names := map[string]int{}
	for j := range s.LAGs {
		g := &s.LAGs[j]
		a := list.item(j, g.Name)
		v.name(a, g.Name)
		if first, dup := names[g.Name]; dup && g.Name != "" {
			v.fault(a.field("name"), shown(g.Name), "another LAG of switch %s has this name%s: names of LAGs differ",
				s.Name, v.line(list.item(first, "").field("name")))
		} else if _, dup := v.uplinks[i][g.Name]; dup && g.Name != "" {
			v.fault(a.field("name"), shown(g.Name), "an uplink of switch %s has this name: teaming lists could not "+
				"tell them apart", s.Name)
		}
		names[g.Name] = j
		enum(v, a, "mode", g.Mode, LACPActive, LACPPassive)
		enum(v, a, "timeout", g.Timeout, LACPSlow, LACPFast)
		enum(v, a, "hash", g.Hash, HashMAC, HashIP, HashIPVLAN, HashIPPort, HashIPPortVLAN)
		enum(v, a, "fallback", g.Fallback, FallbackSingle, FallbackNone)
		v.lagMembers(a.field("uplinks"), i, g, memberOf)
	}
}

func (v *validator) lagMembers(a at, i int, g *LAG, memberOf map[string]string) {
	switch n := len(g.Uplinks); {
	case n == 0:
		v.fault(a, "", "a LAG needs at least one uplink, such as [uplink1, uplink2]")
	case n > MaxLAGMembers:
		v.fault(a, strconv.Itoa(n), "a LAG has at most %d uplinks", MaxLAGMembers)
	}
	for k, name := range g.Uplinks {
		_, ok := v.uplinks[i][name]
		other, taken := memberOf[name]
		switch {
		case !ok:
			v.missing(a.item(k, ""), shown(name), v.noSuchUplink(i, name, false))
		case taken && other == g.Name:
			v.fault(a.item(k, ""), shown(name), "listed twice: keep one")
		case taken:
			v.fault(a.item(k, ""), shown(name), "LAG %s has this uplink already: an uplink is a member of one LAG",
				other)
		}
		memberOf[name] = g.Name
	}
}

// LAG is the LAG of that name, nil when the switch has none.
func (s *Switch) LAG(name string) *LAG {
	for i := range s.LAGs {
		if s.LAGs[i].Name == name {
			return &s.LAGs[i]
		}
	}
	return nil
}

// lagOf names the LAG that has the uplink as a member, "" for none.
func (s *Switch) lagOf(uplink string) string {
	for i := range s.LAGs {
		if slices.Contains(s.LAGs[i].Uplinks, uplink) {
			return s.LAGs[i].Name
		}
	}
	return ""
}

// Standalone names the uplinks that are not members of a LAG, in the order of the file.
func (s *Switch) Standalone() []string {
	names := []string{}
	for i := range s.Uplinks {
		if s.lagOf(s.Uplinks[i].Name) == "" {
			names = append(names, s.Uplinks[i].Name)
		}
	}
	return names
}

// DefaultActive is the active list where no level sets one: the uplinks that are no LAG's member, or, where there is
// none, the switch's only LAG.
func (s *Switch) DefaultActive() []string {
	names := s.Standalone()
	if len(names) == 0 && len(s.LAGs) == 1 {
		names = []string{s.LAGs[0].Name}
	}
	return names
}

// aloneFault says why a list of active uplinks with a LAG in it is not possible, "" when it is.
func (s *Switch) aloneFault(active []string) string {
	for _, name := range active {
		if s.LAG(name) != nil && len(active) > 1 {
			return fmt.Sprintf("LAG %s is to be active alone: a LAG and other uplinks would give the physical switch "+
				"one MAC in two places", name)
		}
	}
	return ""
}
