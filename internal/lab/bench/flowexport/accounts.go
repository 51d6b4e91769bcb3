package flowexport

import (
	"context"
	"fmt"

	"heddle/internal/lab/report"
)

// accounts are the counts of both agents for the whole run: they show whether flows were left out, which would make
// metering look cheap.
type accounts struct {
	packets uint64 // metered
	noRoom  uint64 // packets whose flows did not fit into the kernel's tables
	early   uint64 // packets that became records at once because the agent's table was full
	sent    uint64 // records
	notSent uint64 // records that could not be sent to a collector
}

// noRoomBudget is the share of all packets that may be missing in flows; missing ones are counted.
const noRoomBudget = 0.001

func (r *rig) accounts(ctx context.Context) (a accounts, err error) {
	if !r.meters {
		return a, nil
	}
	for _, s := range sides {
		status, err := r.agents[s].FlowStatus(ctx)
		if err != nil {
			return a, fmt.Errorf("host %s: %w", s.host(), err)
		}
		for _, sw := range status.Switches {
			a.packets += sw.Counted.Packets
			a.early += sw.Overflow.Packets
			for _, l := range sw.Losses {
				a.noRoom += l.Packets
			}
			for _, c := range sw.Collectors {
				a.sent += c.Records
				a.notSent += c.Lost
			}
		}
	}
	return a, nil
}

// budget reports whether every packet was metered while it was measured.
func (a accounts) budget() report.Budget {
	return report.Hold("part of all packets that found no room in the kernel's tables",
		float64(a.noRoom)/float64(a.packets+a.noRoom), report.Ratio, report.AtMost, noRoomBudget)
}

func (a accounts) String() string {
	return fmt.Sprintf("Both agents took %d packets out of the kernel, %d more found no room in its tables; of %d "+
		"packets the flow was told of early, as the agent's table was full; %d records were lost on "+
		"their way to the collectors.", a.packets, a.noRoom, a.early, a.notSent)
}
