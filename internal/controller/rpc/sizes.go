package rpc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
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

// sizes compares the static ports that there are with a definition.
func (f portKeeper) sizes(after *inventory.Inventory) (list sizes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	groups := after.StaticGroups()
	counts := f.statics.counts()
	for name := range counts {
		if _, ok := groups[name]; !ok && name != "" {
			groups[name] = spec.PortGroup{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		list = append(list, size{name, groups[name], counts[name].ports, counts[name].bound})
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

// served refuses a definition by which a host may not serve a port group any more whose ports it has.
func (f portKeeper) served(after *inventory.Inventory, there *elsewhere) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, h := range f.sorted() {
		before := f.inventory.Barred(h.doc.Name, h.doc.Labels)
		names := map[string][]string{}
		for group := range after.Barred(h.doc.Name, h.doc.Labels) {
			if !before[group] {
				names[group] = nil
			}
		}
		if len(names) == 0 {
			continue
		}
		for _, b := range f.statics.byHost[h.id] {
			if _, ends := names[b.group]; ends {
				names[b.group] = append(names[b.group], "static port "+b.id)
			}
		}
		if report, _ := there.reportOf(h); report != nil {
			for _, p := range report.GetPorts() {
				group := p.GetSwitch() + "/" + p.GetPortGroup()
				if _, ends := names[group]; ends && p.GetPort() == "" {
					names[group] = append(names[group], p.GetName())
				}
			}
		}
		for _, group := range slices.Sorted(maps.Keys(names)) {
			if len(names[group]) > 0 {
				lines = append(lines, fmt.Sprintf("host %s would not serve port group %s any more, by its labels, "+
					"and has %s "+
					"there: move these ports, or apply it with --force", h.doc.Name, group,
					strings.Join(names[group], ", ")))
			}
		}
	}
	if len(lines) > 0 {
		return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
	}
	return nil
}

var _ Store = (*store.Store)(nil)
