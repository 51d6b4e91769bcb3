package rpc

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/inventory"
)

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
		for _, b := range f.bindings.On(h.id) {
			if _, ends := names[b.Group]; ends {
				names[b.Group] = append(names[b.Group], "static port "+b.ID)
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
