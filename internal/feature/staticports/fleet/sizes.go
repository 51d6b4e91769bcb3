package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/spec"
)

// size is what a definition makes of the static ports of a port group.
type size struct {
	group        string
	spec         spec.PortGroup // without static ports where they are to end
	ports, bound int            // at present
}

// sizes are those of the port groups that have static ports, or are to have.
type sizes []size

// Count is how many static ports a port group has at present, and how many of them are bound.
type Count struct{ Ports, Bound int }

// sizesOf compares the static ports that there are with a definition.
func sizesOf(after *inventory.Inventory, counts map[string]Count) (list sizes) {
	groups := after.StaticGroups()
	for name := range counts {
		if _, ok := groups[name]; !ok && name != "" {
			groups[name] = spec.PortGroup{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, size{name, groups[name], counts[name].Ports, counts[name].Bound})
	}
	return list
}

// check refuses a definition that has no place for ports that are bound.
func (l sizes) check(force bool) error {
	var lines []string
	for _, s := range l {
		_, limit := s.spec.StaticPorts()
		switch {
		case s.bound <= limit:
		case limit > 0:
			lines = append(lines, fmt.Sprintf("port group %s has %d ports that are bound, more than the %d that it "+
				"is to "+
				"have: release some first (heddle port static list, release)", s.group, s.bound, limit))
		case !force:
			lines = append(lines, fmt.Sprintf("port group %s has %d static ports that are bound: release them "+
				"(heddle port "+
				"static list, release), or end them with --force", s.group, s.bound))
		}
	}
	if len(lines) > 0 {
		return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
	}
	return nil
}

// work is what is to be done for them.
func (l sizes) work(force bool) definition.Ports {
	w := definition.Ports{Forced: force}
	for _, g := range l {
		number, _ := g.spec.StaticPorts()
		switch {
		case !g.spec.HasStaticPorts():
			if g.ports > 0 {
				w.Ending = append(w.Ending, g.group)
			}
		case g.ports < number || g.ports > number && g.spec.Binding != spec.Elastic:
			w.Resize = true
		}
	}
	return w
}
