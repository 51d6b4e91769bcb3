package flowing

import (
	"fmt"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

// nothingMetered is what to do where nothing is metered at all.
const nothingMetered = "nothing is metered: set monitoring: {ipfix: true} at a port group, a port or an uplink, or in defaults"

// place is a port or an uplink of the plan.
type place struct {
	uplink bool
	group  string // of a port
}

// placesOf are the ports and uplinks of the switch.
func placesOf(sw *plan.Switch) map[plan.PortID]place {
	places := map[plan.PortID]place{}
	for _, p := range sw.Ports {
		places[p.ID] = place{group: p.PortGroup}
	}
	for _, u := range sw.Uplinks {
		places[u.ID] = place{uplink: true}
	}
	return places
}

// about says whether the filter means flows of what is called that.
func (m *matcher) about(id plan.PortID, p place) bool {
	return (m.Switch == "" || m.Switch == id.Switch) && (m.Port == "" || m.Port == id.Name) &&
		(m.Uplink == "" || p.uplink && m.Uplink == id.Name) && (m.PortGroup == "" || !p.uplink && m.PortGroup == p.group)
}

// asked says whether there can be flows of those that a filter means: the note why not, and what to do; the error is that the filter names
// what there is not, neither in the plan nor among the points whose flows are still there. A port group without ports is not in the plan, so none is an error.
func (r *Runner) asked(m *matcher, points flow.Points) (note string, err error) {
	wanted := r.wish()
	if wanted == nil { // no plan is in force yet
		return "", nil
	}
	if err := m.named(wanted, points); err != nil {
		return "", err
	}
	any, there := false, false
	for _, w := range wanted {
		any = any || len(w.metered) > 0
		for id := range w.metered {
			there = there || m.about(id, w.places[id])
		}
	}
	switch {
	case there:
		return "", nil
	case !any:
		return nothingMetered, nil
	}
	return m.unmetered(wanted), nil
}

// samplingRate is that of the switches whose flows the filter means, the largest.
func (r *Runner) samplingRate(m *matcher) (rate int) {
	for name, w := range r.wish() {
		if m.Switch == "" || m.Switch == name {
			for id := range w.metered {
				if m.about(id, w.places[id]) {
					rate = max(rate, w.settings.SamplingRate)
				}
			}
		}
	}
	return rate
}

// unmetered is the note for a filter that means ports or uplinks none of which is metered, while others are.
func (m *matcher) unmetered(wanted map[string]wish) string {
	for _, w := range wanted {
		for id, p := range w.places {
			switch {
			case m.Port+m.Uplink == "" || !m.about(id, p):
			case p.uplink:
				return fmt.Sprintf("uplink %s is not metered: set monitoring: {ipfix: true} at it", id.Name)
			default:
				return fmt.Sprintf("port %s is not metered: set monitoring: {ipfix: true} at its port group %s", id.Name, p.group)
			}
		}
	}
	switch {
	case m.Port != "" || m.Uplink != "":
		return "" // of another port group or switch: nothing can match, and nothing would mend it
	case m.PortGroup != "":
		return fmt.Sprintf("no port of a port group %q is metered: set monitoring: {ipfix: true} there, or see \"heddle portgroup list\"", m.PortGroup)
	}
	return fmt.Sprintf("nothing of switch %s is metered: set monitoring: {ipfix: true} at a port group, port or uplink of it", m.Switch)
}

// named is an error when the filter names what there is not.
func (m *matcher) named(wanted map[string]wish, points flow.Points) error {
	var sw, port, uplink bool
	see := func(id plan.PortID, isUplink bool) {
		sw, port, uplink = sw || id.Switch == m.Switch, port || id.Name == m.Port, uplink || isUplink && id.Name == m.Uplink
	}
	for name, w := range wanted {
		sw = sw || name == m.Switch
		for id, p := range w.places {
			see(id, p.uplink)
		}
	}
	for _, p := range points {
		see(p.ID, p.Uplink)
	}
	for _, n := range []struct {
		name, what, list string
		found            bool
	}{{m.Switch, "switch", "heddle switch list", sw}, {m.Port, "port or uplink", "heddle port list", port}, {m.Uplink, "uplink", "heddle uplink list", uplink}} {
		if n.name != "" && !n.found {
			return api.NewError(api.NotFound, fmt.Sprintf("there is no %s %q: see %q", n.what, n.name, n.list))
		}
	}
	return nil
}
