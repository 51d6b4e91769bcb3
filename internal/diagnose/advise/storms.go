package advise

import (
	"heddle/internal/api"
	"heddle/internal/plan/problem"
)

// storms finds uplinks by which broadcasts arrive as in a storm (S169).
func storms(l *look) []api.Finding {
	return troubled(l, problem.StormOutside, func(uplink string) string {
		return "Look at who sends them: heddle capture " + uplink + "; in a loop it is everybody, again and again. " +
			"On the physical switches find the ports whose broadcast counters rise, open the loop, and turn on " +
			"spanning tree and storm control. See loops.md."
	})
}

// discarding finds uplinks whose other end does not forward yet (S172).
func discarding(l *look) []api.Finding {
	return troubled(l, problem.STPDiscards, func(string) string {
		return "Make the port of the physical switch an edge port (portfast, for a trunk as well): a switch of this " +
			"host never forms a loop by its uplinks. Where that can't be, give the switch an upDelay of 30 s."
	})
}

// troubled are the findings about uplinks that have a problem; change says what to do, given the uplink's name.
func troubled(l *look, with problem.Code, change func(uplink string) string) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		for _, u := range sw.Uplinks {
			v := l.uplink[u.ID]
			if v == nil || v.ReasonCode != with {
				continue
			}
			f := onUplink(u, "%s", v.Reason)
			f.Change, f.Command = change(u.ID.Name), l.command(u.ID, "uplink show")
			found = append(found, f)
		}
	}
	return found
}
