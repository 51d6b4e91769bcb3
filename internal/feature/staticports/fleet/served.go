package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/fanout"
	"heddle/internal/controller/inventory"
)

// served refuses a definition by which a host may not serve a port group any more whose ports it has.
func (p *Ports) served(after *inventory.Inventory, there *fanout.Answers) error {
	now := p.Hosts.Defined()
	var lines []string
	for _, h := range p.Hosts.All() {
		before := now.Barred(h.Name, h.Labels)
		names := map[string][]string{}
		for group := range after.Barred(h.Name, h.Labels) {
			if !before[group] {
				names[group] = nil
			}
		}
		if len(names) == 0 {
			continue
		}
		for _, b := range p.bindings.On(h.ID) {
			if _, ends := names[b.Group]; ends {
				names[b.Group] = append(names[b.Group], "static port "+b.ID)
			}
		}
		if report, _ := there.ReportOf(h); report != nil {
			for _, port := range report.GetPorts() {
				group := port.GetSwitch() + "/" + port.GetPortGroup()
				if _, ends := names[group]; ends && port.GetPort() == "" {
					names[group] = append(names[group], port.GetName())
				}
			}
		}
		for _, group := range slices.Sorted(maps.Keys(names)) {
			if len(names[group]) > 0 {
				lines = append(lines, fmt.Sprintf("host %s would not serve port group %s any more, by its labels, "+
					"and has %s "+
					"there: move these ports, or apply it with --force", h.Name, group,
					strings.Join(names[group], ", ")))
			}
		}
	}
	if len(lines) > 0 {
		return connect.NewError(connect.CodeFailedPrecondition, strings.Join(lines, "\n"))
	}
	return nil
}
