package probes

import (
	"slices"
	"time"

	"heddle/internal/fabric"
)

// silent are the names of the hosts whose agents do not know probes of tunnels: they take no part in probes although
// they are connected, or do not say that they know them. The caller holds the lock.
func (h *Hub) silent(now time.Time) map[string]bool {
	all := map[string]bool{}
	for _, name := range h.muteHere(now) {
		all[name] = true
	}
	for _, names := range h.mute {
		for _, name := range names {
			all[name] = true
		}
	}
	for _, one := range h.hosts {
		if able := slices.Contains(one.able, fabric.AbleTunnels); one.gone.IsZero() && one.uplinks != nil {
			all[one.name] = !able
		}
	}
	return all
}

// muteHere are the names of the hosts that have been connected to this controller for a while, and take no part in
// probes. The caller holds the lock.
func (h *Hub) muteHere(now time.Time) (names []string) {
	for id, c := range h.here {
		if h.followers[id] == nil && now.Sub(c.Since) >= settle {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Party is a host that takes part in probes, with its uplinks and what its agent knows to do.
type Party struct {
	Host
	Members []fabric.Member
	Able    []string
}

// Parties are the hosts that are connected, to any controller, by their ids.
func (h *Hub) Parties() map[string]Party {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string]Party{}
	for id, one := range h.hosts {
		if one.gone.IsZero() {
			all[id] = Party{Host{id, one.name}, one.members, one.able}
		}
	}
	return all
}
