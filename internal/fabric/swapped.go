package fabric

// place is a switch on a host.
type place struct{ host, sw string }

// mayBeSwapped finds the uplinks of one host at which nothing passes, though each would pass in another one's VLANs for
// all that is known: their cables may be swapped. Nothing shows that they are: both may lack their VLANs.
func (j *judge) mayBeSwapped(all []*group) map[*group]End {
	dead := map[place][]*group{}
	for _, g := range all {
		if len(g.ends) == 1 && !g.equal && len(g.oneWay) == 0 && j.allOf(g) {
			at := place{g.ends[0].Host, g.ends[0].Switch}
			dead[at] = append(dead[at], g)
		}
	}
	other := map[*group]End{}
	for _, here := range dead {
		for i, a := range here {
			for _, b := range here[i+1:] {
				if _, has := other[b]; !has && other[a] == (End{}) && j.disjoint(a.ends[0], b.ends[0]) {
					other[a], other[b] = b.ends[0], a.ends[0]
				}
			}
		}
	}
	return other
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
