package view

import (
	"fmt"

	"heddle/internal/abi"
	"heddle/internal/dataplane"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec/printable"
)

// Told converts a report of the switch program to an event.
func Told(e dataplane.Told) event.Event {
	out := event.Event{Time: e.At, Switch: e.Port.Switch, Port: e.Port.Name, MAC: e.MAC.String(),
		VLAN: plan.SegmentOf(e.VLAN, e.AD).In(e.VNI)}
	where := out.VLAN.Words()
	if e.VLAN == 0 && e.VNI == 0 {
		where = "the untagged VLAN"
	}
	switch e.Kind {
	case abi.TellLearned:
		out.Kind, out.Text = event.Learned, fmt.Sprintf("%s learned in %s on port %s", out.MAC, where, out.Port)
	case abi.TellMoved:
		out.Kind, out.From, out.To = event.Moved, e.Was.Name, out.Port
		out.Text = fmt.Sprintf("%s in %s moved from port %s to port %s", out.MAC, where,
			orElse(e.Was.Name, "one that is gone"), out.Port)
	case abi.TellOutside:
		out.Kind, out.Uplink = event.Conflict, e.Was.Name
		out.Text = fmt.Sprintf("a station behind uplink %s has the MAC %s of port %s, too, in %s", orElse(e.Was.Name,
			"that is gone"), out.MAC, out.Port, where)
	case abi.TellLimit:
		out.Kind = event.LimitReached
		out.Text = fmt.Sprintf("port %s holds as many learned MACs as it may; %s in %s is not learned", out.Port,
			out.MAC, where)
		if e.Reason == abi.ReasonMACTableFull {
			out.Text = fmt.Sprintf("port %s holds its share of the host's table of learned MACs; %s in %s is not "+
				"learned", out.Port, out.MAC, where)
		}
	default:
		out.Kind, out.VLAN = event.Violation, plan.Segment{}
		out.Reason = e.Reason.String()
		out.Text = fmt.Sprintf("port %s sent a frame from %s that its policy refuses: %s", out.Port, out.MAC, e.Reason)
		if e.Claim.IsValid() {
			out.Address = e.Claim.String()
			out.Text = fmt.Sprintf("port %s sent a frame from %s, in the name of %s, that its policy refuses: %s",
				out.Port,
				out.MAC, out.Address, e.Reason)
		}
	}
	if e.Untold > 0 {
		out.Text += " (" + printable.Count(e.Untold, "event of this port before it was",
			"events of this port before it were") +
			" too many to report)"
	}
	return out
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
