package diagnose

import (
	"slices"
	"strings"

	"heddle/internal/plan"
	"heddle/internal/spec/printable"
)

// Command returns a command about a port, an uplink or a LAG of a plan, as it can be typed: the name is quoted for a
// shell, and the switch is added if several have an uplink or a LAG of that name. verb comes before the name, such as
// "uplink show", more after it.
func Command(p *plan.Plan, id plan.PortID, verb string, more ...string) string {
	words := slices.Concat([]string{"heddle"}, strings.Fields(verb), []string{id.Name}, more)
	if onSeveral(p, id.Name) {
		words = append(words, "--switch", id.Switch)
	}
	return printable.Command(words...)
}

// onSeveral reports whether several switches have an uplink or a LAG of that name.
func onSeveral(p *plan.Plan, name string) bool {
	switches := 0
	for _, sw := range p.Switches {
		if slices.ContainsFunc(sw.Uplinks, func(u *plan.Uplink) bool { return u.ID.Name == name }) ||
			slices.ContainsFunc(sw.LAGs, func(g *plan.LAG) bool { return g.Name == name }) {
			switches++
		}
	}
	return switches > 1
}
