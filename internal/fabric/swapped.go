package fabric

import (
	"fmt"
	"slices"
)

// swapped takes out of groups the pairs of uplinks of one host at which nothing passes, though each would pass in the
// other's VLANs for all that is known: their cables, or their ports at the physical switch, are most likely swapped.
func (j *judge) swapped(all []*group) (rest []*group) {
	taken := map[*group]bool{}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if taken[a] || taken[b] || !j.maySwap(a, b) {
				continue
			}
			taken[a], taken[b] = true, true
			j.out.Findings = append(j.out.Findings, j.swap(a, b))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(g *group) bool { return taken[g] })
}

// maySwap reports whether two groups are two uplinks of a switch on one host, with no VLAN in common, at which none of
// their VLANs passes in either direction.
func (j *judge) maySwap(a, b *group) bool {
	for _, g := range []*group{a, b} {
		if len(g.ends) != 1 || g.equal || len(g.oneWay) > 0 || !j.allOf(g) {
			return false
		}
	}
	x, y := a.ends[0], b.ends[0]
	return x.Host == y.Host && x.Switch == y.Switch && x != y &&
		!slices.ContainsFunc(a.vlans, func(v uint16) bool { return has(j.members[y], v) })
}

func (j *judge) swap(a, b *group) Finding {
	ends := slices.Concat(a.ends, b.ends)
	f := Finding{Code: NothingPasses, Switch: a.key.sw, VLANs: slices.Sorted(slices.Values(slices.Concat(a.vlans,
		b.vlans))), Ends: j.what(ends), Hosts: hostsOf(ends)}
	f.Text = fmt.Sprintf("nothing passes at %s in its VLANs (%s), nor at %s in its own (%s), although their links are "+
		"up: their cables, or the ports of the physical switch, seem to be swapped", j.members[a.ends[0]].What(),
		Ranges(a.vlans), j.members[b.ends[0]].What(), Ranges(b.vlans))
	f.Remedy = "swap the cables at " + j.plugs(ends) + ", or the VLANs of these ports"
	return f
}
