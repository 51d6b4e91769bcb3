package advise

import (
	"fmt"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
)

// storms finds uplinks by which broadcasts arrive as in a storm (S169).
func storms(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		for _, u := range sw.Uplinks {
			v := l.uplink[u.ID]
			if v == nil || v.ReasonCode != problem.StormOutside {
				continue
			}
			f := onUplink(u, "%s", v.Reason)
			f.Change = fmt.Sprintf("Look at who sends them: heddle capture %s; in a loop it is everybody, again "+
				"and again. On the physical switches find the ports whose broadcast counters rise, open the loop, and "+
				"turn on spanning tree and storm control. See loops.md.", u.ID.Name)
			f.Command = l.command(u.ID, "uplink show")
			found = append(found, f)
		}
	}
	return found
}

// discarding finds uplinks whose other end does not forward yet (S172).
func discarding(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		for _, u := range sw.Uplinks {
			v := l.uplink[u.ID]
			if v == nil || v.ReasonCode != problem.STPDiscards {
				continue
			}
			f := onUplink(u, "%s", v.Reason)
			f.Change = "Make the port of the physical switch an edge port (portfast, for a trunk as well): a " +
				"switch of this host never forms a loop by its uplinks. Where that can't be, give the switch an " +
				"upDelay of 30 s."
			f.Command = l.command(u.ID, "uplink show")
			found = append(found, f)
		}
	}
	return found
}
