package agent

import (
	"cmp"

	"heddle/internal/agent/moves"
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

// silent returns the ports that are silent, with what a trace says about them.
func (an *answers) silent() map[plan.PortID]trace.Silence {
	all := map[plan.PortID]trace.Silence{}
	for _, w := range an.state.Waits {
		if w.Silent() {
			host, arrived := an.moving.otherHost(w.ID.Name, w.Left)
			all[w.ID] = trace.Silence{Why: w.Text(), Since: w.Since, Host: host, Arrived: arrived}
		}
	}
	return all
}

// otherHost returns the host to which a port's guest has left, or from which it comes: its name or, without one, its
// id. "" if no move says so. arrived reports whether that host has said that the guest runs there.
func (mv *moving) otherHost(port string, left bool) (host string, arrived bool) {
	t := mv.travelOf(port)
	if t == nil {
		return "", false
	}
	var m moves.Track
	switch {
	case left && t.Away != nil:
		m = t.Away.Track
	case !left && t.Here != nil:
		m = t.Here.Track
	}
	return cmp.Or(m.HostName, m.Host), m.Phase == moves.Active || m.Phase == moves.Released
}
