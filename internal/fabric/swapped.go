package fabric

import (
	"fmt"
	"slices"
)

// place is a switch on a host.
type place struct{ host, sw string }

// mayBeSwapped finds pairs of uplinks of one host at which nothing passes, though each would pass in the other one's
// VLANs for all that is known: their cables may be swapped. Nothing shows that they are: both may lack their VLANs.
func (j *judge) mayBeSwapped(all []*group) map[*group]*group {
	dead := map[place][]*group{}
	for _, g := range all {
		if len(g.ends) == 1 && !g.equal && len(g.oneWay) == 0 && j.allOf(g) {
			at := place{g.ends[0].Host, g.ends[0].Switch}
			dead[at] = append(dead[at], g)
		}
	}
	other := map[*group]*group{}
	for _, here := range dead {
		for i, a := range here {
			for _, b := range here[i+1:] {
				if other[a] == nil && other[b] == nil && j.disjoint(a.ends[0], b.ends[0]) {
					other[a], other[b] = b, a
				}
			}
		}
	}
	return other
}

// sayBoth makes one finding of two uplinks whose cables may be swapped.
func (j *judge) sayBoth(a, b *group) {
	f := Finding{Code: CablesSwapped, Switch: a.key.sw, VLANs: slices.Concat(a.vlans, b.vlans),
		Ends: j.what([]End{a.ends[0], b.ends[0]}), Others: append(j.what(a.others), j.what(b.others)...),
		Hosts: append(a.hosts(), b.hosts()...)}
	one, two := j.members[a.ends[0]].What(), j.members[b.ends[0]].What()
	f.Text = fmt.Sprintf("nothing passes at %s (%s), nor at %s (%s), although the links of both are up: their cables "+
		"may be swapped", one, inVLANs(a.vlans), two, inVLANs(b.vlans))
	f.Remedy = fmt.Sprintf("follow both cables; if each is where it belongs, let %s pass at %s, and %s at %s",
		inVLANs(a.vlans), j.plugs(a.ends), inVLANs(b.vlans), j.plugs(b.ends))
	slices.Sort(f.VLANs)
	j.out.Findings = append(j.out.Findings, f)
}

// inVLANs says in which VLANs: "VLAN 10", "VLANs 10, 20", "untagged frames".
func inVLANs(vlans []uint16) string {
	switch {
	case len(vlans) > 1:
		return "VLANs " + Ranges(vlans)
	case vlans[0] == 0:
		return "untagged frames"
	}
	return "VLAN " + Ranges(vlans)
}

// disjoint reports whether two uplinks have no VLAN in common.
func (j *judge) disjoint(a, b End) bool {
	for _, v := range j.members[a].VLANs {
		if has(j.members[b], v) {
			return false
		}
	}
	return a != b
}
