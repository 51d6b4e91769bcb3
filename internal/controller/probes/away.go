package probes

import "time"

// absence is which hosts are connected to no controller.
type absence struct {
	names  map[string]bool      // of hosts that are not connected to this controller
	others []string             // the ids of the other controllers
	since  map[string]time.Time // since when no controller has a host
}

// notHere are the hosts that are not connected here, and the other controllers. It is called without the hub's lock.
func (o *Options) notHere() (names map[string]bool, others []string) {
	if o.Absent != nil {
		names = o.Absent()
	}
	if o.Others != nil {
		others = o.Others()
	}
	return names, others
}

// set takes over who is not connected here, and who else may have them.
func (a *absence) set(names map[string]bool, others []string) { a.names, a.others = names, others }

// lasting are those of the hosts that have been connected to no controller for a while: by then another controller has
// said whom it has. While one of them is not heard nobody knows, and it is nobody.
func (a *absence) lasting(now time.Time, heard func(controller string) bool, present map[string]bool) map[string]bool {
	before := a.since
	a.since = map[string]time.Time{}
	for _, id := range a.others {
		if !heard(id) {
			return nil
		}
	}
	all := map[string]bool{}
	for name := range a.names {
		if present[name] {
			continue
		}
		since, has := before[name]
		if !has {
			since = now
		}
		a.since[name] = since
		all[name] = now.Sub(since) >= linger
	}
	return all
}

// away are the names of the cluster's hosts that have been connected to no controller for a while. The caller holds the
// lock.
func (h *Hub) away(now time.Time) map[string]bool {
	present := map[string]bool{}
	for _, one := range h.hosts {
		one.joins(present)
	}
	for _, names := range h.mute {
		for _, name := range names {
			present[name] = true
		}
	}
	heard := func(controller string) bool {
		_, has := h.heard[controller]
		return has
	}
	return h.absence.lasting(now, heard, present)
}

// joins adds the host to those that are connected, if it is.
func (o *host) joins(present map[string]bool) {
	if o.gone.IsZero() {
		present[o.name] = true
	}
}
