package agent

import (
	"heddle/internal/diagnose/trace"
	"heddle/internal/plan"
)

// silent returns the ports that are silent, with what a trace says about them.
func (an *answers) silent() map[plan.PortID]trace.Silence {
	all := map[plan.PortID]trace.Silence{}
	for _, w := range an.state.Waits {
		if w.Silent() {
			host, arrived := an.moving.OtherHost(w.ID.Name, w.Left)
			all[w.ID] = trace.Silence{Why: w.Text(), Since: w.Since, Host: host, Arrived: arrived}
		}
	}
	return all
}
