package admission

import (
	"cmp"
	"fmt"
	"strings"

	"heddle/internal/agent/view"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// berth is what this host has for a guest that is to arrive.
type berth struct {
	src view.Source
	cfg *spec.Config
	// table is how many learned MACs the host can hold, held how many it holds; called only where it matters.
	table int
	held  func() (int, error)
}

// up reports whether a port's device passes frames.
func (b berth) up(id plan.PortID) bool { return b.src.Applied != nil && b.src.Applied.Facts[id].Up }

// refuses says by an error what the host lacks for the guest; nil for nothing.
func (b berth) refuses(q *arrival) error {
	lines := b.missing("port "+q.Name+": its guest", q.Needs)
	if sw := b.src.Plan.Switch(q.on); q.NeedsUplink && sw != nil {
		why := b.wayOff(sw, q.PortGroup)
		if why != "" {
			lines = append(lines, fmt.Sprintf("port %s: its guest reaches the physical network where it runs, and "+
				"would not here: %s", q.Name, why))
		}
	}
	if q.MACs > 0 {
		why, err := b.cramped(q)
		if err != nil {
			return err
		}
		if why != "" {
			lines = append(lines, fmt.Sprintf("port %s: it has learned %d MACs where its guest runs, and %s", q.Name,
				q.MACs, why))
		}
	}
	if free := max(0, q.most-q.held); q.most > 0 && free < q.Flows {
		lines = append(lines, fmt.Sprintf("port %s: it has %d flows where its guest runs, and the table of flows of "+
			"switch %s has room for %d more here (%d of %d): flows would be exported before they end (heddle flows "+
			"status)", q.Name, q.Flows, q.on, free, q.held, q.most))
	}
	if q.lacks != "" {
		lines = append(lines, fmt.Sprintf("port %s: %s", q.Name, q.lacks))
	}
	return unfitBerth(lines)
}

// refusesGuest says by an error what the host lacks for a guest beside its ports; nil for nothing.
func (b berth) refusesGuest(q api.Expect) error {
	if q.Force {
		return nil
	}
	return unfitBerth(b.missing("guest "+q.Guest, q.Needs))
}

// unfitBerth is the error of those lines, nil for none.
func unfitBerth(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return api.NewError(api.Invalid, append(lines, "use --force to prepare it even so (in a domain's metadata "+
		"force='yes', in the notes of a guest of Proxmox force=yes)")...)
}

// missing says which of the things that a guest needs this host lacks.
func (b berth) missing(what string, needs []string) (lines []string) {
	for _, name := range needs {
		if why := b.lacks(name); why != "" {
			lines = append(lines, fmt.Sprintf("%s needs %s, and %s", what, name, why))
		}
	}
	return lines
}

// cramped says why the host can't hold the MACs that a port has learned; "" where it can. Where the port may have a
// limit of its own, that comes along with it, and is not known yet.
func (b berth) cramped(q *arrival) (why string, err error) {
	on, policy := q.on, plan.OfGroup(b.cfg, q.on, q.PortGroup)
	if policy == nil {
		return "", nil // which says itself that there is no such port group
	}
	l := policy.Learning
	switch {
	case b.lets(on, q.PortGroup).Security:
	case !l.Enabled.V:
		return fmt.Sprintf("port group %s/%s does not learn any here", on, q.PortGroup), nil
	case l.Limit.V < q.MACs:
		return fmt.Sprintf("port group %s/%s lets a port hold %d here (security.macLearning.limit)", on, q.PortGroup,
			l.Limit.V), nil
	}
	held, err := b.held()
	if free := max(0, b.table-held); err == nil && free < q.MACs {
		why = fmt.Sprintf("this host's table of learned MACs has room for %d more (host.macTable: %d)", free, b.table)
	}
	return why, err
}

// lets is what a port group lets its ports set for themselves.
func (b berth) lets(on, group string) (o spec.Overrides) {
	for _, s := range b.cfg.Switches {
		for _, g := range s.PortGroups {
			if s.Name == on && g.Name == group {
				return g.Overrides
			}
		}
	}
	return o
}

// wayOff says why no frame passes between a port group and the physical network; "" where one may. The way of an
// overlay segment is the switch's tunnel alone.
func (b berth) wayOff(sw *plan.Switch, group string) (why string) {
	if b.isOverlay(sw.Name, group) {
		if sw.Tunnel == nil || !b.up(sw.Tunnel.ID) {
			return "no endpoint of the tunnel of switch " + sw.Name + " can be used"
		}
		return ""
	}
	why = b.cutOff(sw)
	if why == "" && !b.lets(sw.Name, group).Teaming { // a port's own team comes along, and is not known yet
		why = b.teamOff(sw, group)
	}
	return why
}

// isOverlay reports whether a port group is an overlay segment.
func (b berth) isOverlay(on, group string) bool {
	for _, s := range b.cfg.Switches {
		for i := range s.PortGroups {
			if g := &s.PortGroups[i]; s.Name == on && g.Name == group {
				return g.VNI() != 0
			}
		}
	}
	return false
}

// cutOff says why no frame passes between a switch and the physical network; "" where some uplink is up.
func (b berth) cutOff(sw *plan.Switch) string {
	if len(sw.Uplinks) == 0 {
		return "switch " + sw.Name + " has no uplink"
	}
	why, _ := b.src.Isolated(sw)
	return why
}

// teamOff says why no frame passes between a port group and the physical network by its own team; "" where one may.
func (b berth) teamOff(sw *plan.Switch, group string) string {
	policy := plan.OfGroup(b.cfg, sw.Name, group)
	if policy == nil {
		return ""
	}
	return b.src.CutOff(sw, group, policy.Teaming)
}

// lacks says what is wrong with a host port or a port group that a guest needs, by its name or SWITCH/NAME; "" for
// nothing.
func (b berth) lacks(name string) string {
	for _, sw := range b.src.Plan.Switches {
		for _, p := range sw.Ports {
			if p.Role != spec.Host || name != p.ID.Name && name != sw.Name+"/"+p.ID.Name {
				continue
			}
			if !b.up(p.ID) {
				return "that host port is not up"
			}
			return cmp.Or(b.cutOff(sw), b.src.CutOff(sw, p.PortGroup, p.Policy.Teaming))
		}
	}
	for _, s := range b.cfg.Switches {
		for _, g := range s.PortGroups {
			if sw := b.src.Plan.Switch(s.Name); sw != nil && (name == g.Name || name == s.Name+"/"+g.Name) {
				return cmp.Or(b.cutOff(sw), b.teamOff(sw, g.Name))
			}
		}
	}
	return "this host has neither a host port nor a port group of that name (" + strings.Join(b.known(), ", ") + ")"
}

// known are the names that a guest may need, some of them.
func (b berth) known() (names []string) {
	const most = 8
	for _, sw := range b.src.Plan.Switches {
		for _, p := range sw.Ports {
			if p.Role == spec.Host {
				names = append(names, p.ID.Name)
			}
		}
	}
	for _, sw := range b.cfg.Switches {
		for _, g := range sw.PortGroups {
			names = append(names, sw.Name+"/"+g.Name)
		}
	}
	if len(names) > most {
		names = append(names[:most], "…")
	}
	if len(names) == 0 {
		names = []string{"it has none at all"}
	}
	return names
}
