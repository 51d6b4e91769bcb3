package advise

import (
	"fmt"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func flowRules() []Rule {
	return []Rule{
		{"flow-room", api.FindingWrong, "flow tables are full",
			"packets that are in no flow record, and packets of flows that did not fit into the agent's table",
			"who talks to whom is recorded in part, or in many records of single packets; a scan or a flood of new " +
				"flows does that, or a bound that is too low",
			"Raise ipfix.maxFlows, or meter fewer ports.",
			flowRoom},
		{"flow-collector", api.FindingWrong, "a collector of flow records cannot be reached",
			"the state of the export to it, for 30 s and more",
			"its records are lost after a short while; the other collectors get theirs",
			"Start the collector, or correct its address, port and transport.",
			flowCollector},
	}
}

func flowRoom(l *look) (found []api.Finding) {
	if l.Flows == nil {
		return nil
	}
	for i := range l.Flows.Switches {
		sw := &l.Flows.Switches[i]
		var lost uint64
		at := plan.PortID{Switch: sw.Switch}
		worst := api.FlowLoss{}
		for _, loss := range sw.Losses {
			lost += loss.Packets
			if loss.Packets > worst.Packets {
				worst = loss
			}
		}
		var signs []string
		if lost > 0 {
			signs = append(signs, fmt.Sprintf("%s in no flow record %s, most of them seen at %s", many(lost, "packet"),
				l.periodOfMany(), worst.Port))
		}
		if n := sw.Overflow.Packets; n > 0 {
			signs = append(signs, fmt.Sprintf("%s of flows that did not fit into the table of %d", many(n, "packet"),
				sw.MaxFlows))
		}
		if len(signs) == 0 {
			continue
		}
		f := l.dated(api.Finding{Switch: sw.Switch, Sign: strings.Join(signs, "; ")}, at, flowsMissing)
		if sw.MaxFlows < spec.MaxMaxFlows {
			found = append(found, remedy(f, l.explain.FixSwitch(sw.Switch, "Allow more flows, or find who begins so "+
				"many.", fmt.Sprintf("ipfix: {maxFlows: %d}", min(2*sw.MaxFlows, spec.MaxMaxFlows)))))
			continue
		}
		f.Change, f.Command = "Find who begins so many flows, or shorten the timeouts.", "heddle flows top --sort "+
			"packets"
		found = append(found, f)
	}
	return found
}

// awayFor is how long a collector may be unreachable before it is a finding: it may be restarting.
const awayFor = 30 * time.Second

func flowCollector(l *look) (found []api.Finding) {
	if l.Flows == nil {
		return nil
	}
	for i := range l.Flows.Switches {
		for _, c := range l.Flows.Switches[i].Collectors {
			away := l.Now.Sub(c.Since).Round(time.Second)
			if c.State == api.CollectorSending || c.State == api.CollectorClosed || away < awayFor {
				continue
			}
			why := c.LastError
			if why == "" {
				why = "no answer says why"
			}
			found = append(found, api.Finding{Switch: l.Flows.Switches[i].Switch, FirstSeen: c.Since,
				Sign: fmt.Sprintf("collector %s is %s for %v: %s; %s lost", c.Collector, c.State, away, why,
					many(c.Lost, "record")),
				Change:  "Start the collector, correct its address, or take it out of ipfix.collectors.",
				Command: "heddle flows status"})
		}
	}
	return found
}

// FlowsSince returns the metering counters between two readings.
func FlowsSince(before, now *api.FlowStatus) *api.FlowStatus {
	if before == nil || now == nil {
		return now
	}
	out := &api.FlowStatus{}
	for _, sw := range now.Switches {
		for i := range before.Switches {
			if was := &before.Switches[i]; was.Switch == sw.Switch {
				sw.Overflow.Packets = diff(sw.Overflow.Packets, was.Overflow.Packets)
				sw.Losses = lossesSince(was.Losses, sw.Losses)
			}
		}
		out.Switches = append(out.Switches, sw)
	}
	return out
}

func lossesSince(before, now []api.FlowLoss) (out []api.FlowLoss) {
	was := map[string]uint64{}
	for _, l := range before {
		was[l.Port] = l.Packets
	}
	for _, l := range now {
		if l.Packets = diff(l.Packets, was[l.Port]); l.Packets > 0 {
			out = append(out, l)
		}
	}
	return out
}
