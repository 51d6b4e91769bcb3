package rpc

import (
	"slices"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/slice"
	"heddle/internal/spec/printable"
)

// Bounds of what is kept of a host's switches: more uplinks than any switch has, and texts in bytes.
const (
	mostUplinks = 64
	mostReason  = 500
)

// switchesOf are the switches that a host reports, of those that it has by the definition, or has active. A host speaks
// for nothing else (S104). The caller holds the lock.
func switchesOf(f *fleet, h *host, reported []*controllerv1.HostSwitch) (list []*controllerv1.HostSwitch) {
	set, err := f.target(h)
	if err != nil {
		return h.switches // the definition is damaged: what was reported before stays
	}
	sets := []*slice.Set{set}
	if active, ok := f.sets[h.active.hash]; ok && h.active.known {
		sets = append(sets, active)
	}
	seen := map[string]bool{}
	for _, sw := range reported {
		key := slice.Key{Kind: slice.Switch, Name: sw.GetName()}
		if seen[sw.GetName()] || !slices.ContainsFunc(sets, func(s *slice.Set) bool {
			_, ok := s.Get(key)
			return ok
		}) {
			continue
		}
		seen[sw.GetName()] = true
		kept := &controllerv1.HostSwitch{Name: sw.GetName(), Maintained: sw.GetMaintained(),
			Isolated: printable.Short(sw.GetIsolated(), mostReason)}
		for _, u := range sw.GetUplinks()[:min(len(sw.GetUplinks()), mostUplinks)] {
			kept.Uplinks = append(kept.Uplinks, &controllerv1.HostUplink{Name: printable.Short(u.GetName(), mostReason),
				Device: printable.Short(u.GetDevice(), mostReason), State: printable.Short(u.GetState(), mostReason),
				Reason: printable.Short(u.GetReason(), mostReason)})
		}
		list = append(list, kept)
	}
	return list
}

// isolated says which switches of a host no frame enters or leaves, a line each: those whose uplinks are down, and
// those whose uplinks somebody took out of use.
func (h *host) isolated() (down, maintained []string) {
	for _, sw := range h.switches {
		switch {
		case sw.GetIsolated() == "":
		case sw.GetMaintained():
			maintained = append(maintained, sw.GetIsolated())
		default:
			down = append(down, sw.GetIsolated())
		}
	}
	return down, maintained
}
