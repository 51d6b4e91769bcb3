package advise

import (
	"fmt"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
)

func guestRules() []Rule {
	return []Rule{
		{"guest-overdue", api.FindingNote, "a guest that was to arrive by a migration has not",
			"how long the port has waited for it, and by what that is known",
			"the port takes and sends nothing until the guest runs: one that runs here and is silent is not reached",
			"Say that the guest runs here, if it does: heddle port activate PORT.",
			guestOverdue},
	}
}

func guestOverdue(l *look) (found []api.Finding) {
	for i := range l.State.Ports {
		p := &l.State.Ports[i]
		if p.Wait == nil || !p.Wait.Overdue {
			continue
		}
		found = append(found, api.Finding{Switch: p.Switch, Port: p.Name, FirstSeen: p.Wait.Since,
			Sign: fmt.Sprintf("nothing has come from it for %s; that it is to arrive is known because %s",
				l.Now.Sub(p.Wait.Since).Round(time.Second), p.Wait.Why),
			Change: "If the guest runs here, say so. If its migration still goes on, wait. If it was given up, end " +
				"the QEMU that waits here, " +
				"or disconnect the port.",
			Command: l.command(plan.PortID{Switch: p.Switch, Name: p.Name}, "port activate")})
	}
	return found
}
