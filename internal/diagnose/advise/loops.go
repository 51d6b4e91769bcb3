package advise

import (
	"fmt"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/trace"
)

func loopRules() []Rule {
	return []Rule{
		{"loop", api.FindingWrong, "frames go round by a port",
			"ports that Heddle has blocked because of a loop, and what they lost since",
			"without the block one broadcast would take every guest's bandwidth; with it, one way of the two is closed",
			"Open one of the two ways that the frames go round by; the port comes back by itself.",
			looped},
	}
}

func looped(l *look) (found []api.Finding) {
	for _, sw := range l.Host.Plan.Switches {
		for _, p := range sw.Ports {
			if l.Host.Facts[p.ID].LoopBlocked == nil {
				continue
			}
			at := onPort(p, "")
			c := l.of(p.ID)
			at.Sign = fmt.Sprintf("Heddle kept back %s that it sent and %s for it %s",
				frames(c.dropped(abi.ReasonLoopBlocked)), frames(c.kept(abi.ReasonLoopBlocked)), l.period(p.ID))
			cause, _ := l.explain.Explain(p.ID, abi.ReasonLoopBlocked, trace.Known{})
			found = append(found, remedy(at, cause))
		}
	}
	return found
}
