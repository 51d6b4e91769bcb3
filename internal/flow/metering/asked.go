package metering

import (
	"fmt"
	"maps"
	"slices"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/plan"
	"heddle/internal/spec/known"
)

// nothingMetered says what to do where nothing is metered at all.
func nothingMetered() api.FlowNote {
	return api.FlowNote{Code: api.NothingMetered, Text: "nothing is metered: set monitoring: {ipfix: true} at a port " +
		"group, a port or an uplink, or in defaults"}
}

// member is a port or an uplink of the plan, with what filters ask about.
type member struct {
	uplink bool
	group  string // of a port
}

// membersOf are the ports and uplinks of the switch, and its tunnel.
func membersOf(sw *plan.Switch) map[plan.PortID]member {
	places := map[plan.PortID]member{}
	for _, p := range sw.Ports {
		places[p.ID] = member{group: p.PortGroup}
	}
	for _, u := range sw.Uplinks {
		places[u.ID] = member{uplink: true}
	}
	if sw.Tunnel != nil {
		places[sw.Tunnel.ID] = member{uplink: true}
	}
	return places
}

// about says whether the filter selects flows at the port or uplink with that name.
func (m *matcher) about(id plan.PortID, p member) bool {
	return (m.Switch == "" || m.Switch == id.Switch) && (m.Port == "" || m.Port == id.Name) &&
		(m.Uplink == "" || p.uplink && m.Uplink == id.Name) &&
		(m.PortGroup == "" || !p.uplink && m.PortGroup == p.group)
}

// asked says whether the filter can match any flows: the note says why not, and what to do. The error is that the
// filter names something that exists neither in the configuration nor among the points whose flows are still stored.
func (r *Runner) asked(m *matcher, points flow.Points) (note api.FlowNote, err error) {
	wanted := r.demands()
	if wanted == nil { // no plan is active yet
		return note, nil
	}
	if err := m.named(wanted, points); err != nil {
		return note, err
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
		return note, nil
	case !any:
		return nothingMetered(), nil
	}
	return m.unmetered(wanted), nil
}

// samplingRate is the largest sampling rate of the switches whose flows the filter selects.
func (r *Runner) samplingRate(m *matcher) (rate int) {
	for name, w := range r.demands() {
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

// unmetered is the note for a filter that only selects ports or uplinks that are not metered, while others are.
func (m *matcher) unmetered(wanted map[string]demand) api.FlowNote {
	for _, w := range wanted {
		for id, p := range w.places {
			switch {
			case m.Port+m.Uplink == "" || !m.about(id, p):
			case p.uplink:
				return api.FlowNote{Code: api.UplinkNotMetered, Name: id.Name, Text: fmt.Sprintf("uplink %s is not "+
					"metered: set monitoring: {ipfix: true} at it", id.Name)}
			default:
				return api.FlowNote{Code: api.PortNotMetered, Name: id.Name, PortGroup: p.group,
					Text: fmt.Sprintf("port %s is not metered: set monitoring: {ipfix: true} at its port group %s",
						id.Name, p.group)}
			}
		}
	}
	switch {
	case m.Port != "" || m.Uplink != "":
		return api.FlowNote{} // of another port group or switch: nothing can match, and no change would help
	case m.PortGroup != "":
		return api.FlowNote{Code: api.PortGroupNotMetered, Name: m.PortGroup, Text: fmt.Sprintf("no port of port "+
			"group %s is metered: set monitoring: {ipfix: true} there", m.PortGroup)}
	}
	return api.FlowNote{Code: api.SwitchNotMetered, Name: m.Switch, Text: fmt.Sprintf("nothing of switch %s is "+
		"metered: set monitoring: {ipfix: true} at a port group, port or uplink of it", m.Switch)}
}

// named is an error when the filter names something that does not exist; with a switch, on that switch.
func (m *matcher) named(wanted map[string]demand, points flow.Points) error {
	known := newNames()
	for name, w := range wanted {
		known.switches[name] = true
		if m.Switch != "" && m.Switch != name {
			continue
		}
		for _, g := range w.groups {
			known.groups[g] = true
		}
		for id, p := range w.places {
			known.see(id, p)
		}
	}
	for _, p := range points { // points that are gone but whose flows are still stored
		known.switches[p.ID.Switch] = true
		if m.Switch == "" || m.Switch == p.ID.Switch {
			known.see(p.ID, member{uplink: p.Uplink, group: p.PortGroup})
		}
	}
	return known.check(m)
}

// names are the names that a filter can use.
type names struct{ switches, ports, uplinks, groups map[string]bool }

func newNames() names {
	return names{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

func (n names) see(id plan.PortID, p member) {
	n.ports[id.Name] = true // uplinks too
	if p.uplink {
		n.uplinks[id.Name] = true
		return
	}
	n.groups[p.group] = true
}

// check is an error that says which name does not exist, and which do.
func (n names) check(m *matcher) error {
	for _, x := range []struct {
		name, what string
		there      map[string]bool
	}{{m.Switch, "switch", n.switches}, {m.Port, "port or uplink", n.ports}, {m.Uplink, "uplink", n.uplinks},
		{m.PortGroup, "port group", n.groups}} {
		if x.name == "" || x.there[x.name] {
			continue
		}
		k := known.Names{What: x.what, All: slices.Collect(maps.Keys(x.there))}
		if m.Switch != "" && x.what != "switch" {
			k.Owner = "switch " + m.Switch
		}
		return api.NewError(api.NotFound, k.Missing(x.name))
	}
	return nil
}
