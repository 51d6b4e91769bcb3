package fabric

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Nobody says at which switches the tunnels of one host reach no endpoint of another host, by what that host's own
// probes found. The host knows that also while no controller, who would say what others found, reaches it.
func Nobody(list []Tunnel) (out []Finding) {
	by := map[string][]Tunnel{}
	for _, t := range list {
		if !t.Mute {
			by[t.Switch] = append(by[t.Switch], t)
		}
	}
	for _, sw := range slices.Sorted(maps.Keys(by)) {
		if slices.ContainsFunc(by[sw], func(t Tunnel) bool { return t.State == Passes || t.State == Unknown }) {
			continue
		}
		g, own := newTunnels(sw, by[sw]), map[netip.Addr]bool{}
		for _, t := range by[sw] {
			own[t.Own] = true
		}
		f := g.finding(Unreachable, slices.SortedFunc(maps.Keys(own), netip.Addr.Compare), nil)
		f.Text = fmt.Sprintf("the tunnel of switch %s reaches none of the %d endpoints of other hosts that it probes",
			sw, len(by[sw]))
		f.Remedy = "look at the network of this host's endpoints: their devices, addresses and routes, and a " +
			"firewall in between (heddle uplink show tunnel)"
		out = append(out, f)
	}
	return out
}

// Added are findings with those of others that are about something else: a switch has one of a code.
func Added(list, more []Finding) []Finding {
	out := slices.Clone(list)
	for _, f := range more {
		if !slices.ContainsFunc(list, func(o Finding) bool { return o.Code == f.Code && o.Switch == f.Switch }) {
			out = append(out, f)
		}
	}
	return out
}
