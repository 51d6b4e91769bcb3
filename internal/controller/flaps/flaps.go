package flaps

import (
	"cmp"
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Bounds of what a host says.
const (
	// most is how many MACs of one host count, mostElsewhere how many other hosts are named with one.
	most, mostElsewhere = 64, 8
	// longest bounds each text, in bytes.
	longest = 256
)

// Checked is the part of a host's list that counts.
func Checked(list []*controllerv1.LearnedAgain) (out []*controllerv1.LearnedAgain) {
	for _, a := range list[:min(len(list), most)] {
		texts := []string{a.GetSwitch(), a.GetSegment(), a.GetMac(), a.GetPort()}
		if a.GetTimes() > 0 && !slices.ContainsFunc(texts, func(s string) bool { return len(s) > longest || s == "" }) {
			out = append(out, &controllerv1.LearnedAgain{Switch: a.GetSwitch(), Segment: a.GetSegment(),
				Mac: a.GetMac(), Port: a.GetPort(), Times: a.GetTimes()})
		}
	}
	return out
}

// Host is what one host has learned more than once.
type Host struct {
	ID, Name string
	Again    []*controllerv1.LearnedAgain
}

type key struct{ sw, segment, mac string }

func keyOf(a *controllerv1.LearnedAgain) key { return key{a.GetSwitch(), a.GetSegment(), a.GetMac()} }

// Join is, for each host by its id, the MACs that others have in their lists, too. A host that is listed twice counts
// once, with its first list.
func Join(hosts []Host) map[string][]*controllerv1.FlappingMac {
	slices.SortStableFunc(hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	at, seen := map[key][]Host{}, map[string]bool{}
	for _, h := range hosts {
		if seen[h.ID] {
			continue
		}
		seen[h.ID] = true
		for _, a := range h.Again {
			at[keyOf(a)] = append(at[keyOf(a)], Host{h.ID, h.Name, []*controllerv1.LearnedAgain{a}})
		}
	}
	out := map[string][]*controllerv1.FlappingMac{}
	for _, list := range at {
		for i, h := range list {
			m := &controllerv1.FlappingMac{Here: h.Again[0]}
			for k, other := range list {
				if k != i && other.ID != h.ID && len(m.GetElsewhere()) < mostElsewhere {
					m.Elsewhere = append(m.Elsewhere, &controllerv1.FlappingElsewhere{Host: other.Name,
						Port: other.Again[0].GetPort(), Times: other.Again[0].GetTimes()})
				}
			}
			if len(m.GetElsewhere()) > 0 {
				out[h.ID] = append(out[h.ID], m)
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b *controllerv1.FlappingMac) int {
			x, y := a.GetHere(), b.GetHere()
			return cmp.Or(cmp.Compare(y.GetTimes(), x.GetTimes()), cmp.Compare(x.GetMac(), y.GetMac()),
				cmp.Compare(x.GetSwitch(), y.GetSwitch()), cmp.Compare(x.GetSegment(), y.GetSegment()))
		})
	}
	return out
}
