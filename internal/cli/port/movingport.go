package port

import (
	"fmt"
	"strings"

	"heddle/internal/api"
	"heddle/internal/diagnose/across"
	"heddle/internal/spec/printable"
)

// OfOneGuest is the port, of several that are those of one adapter on different hosts, where the guest runs: while it
// moves, two hosts have one. Where it stands still, that is the one that it has left. -1 for ports of several guests,
// and where two run.
func OfOneGuest(ports []api.Port) int {
	runs, left := -1, -1
	for i, p := range ports {
		switch {
		case p.VM == "" || p.VM != ports[0].VM || p.Adapter != ports[0].Adapter || runs >= 0 && p.Wait == nil:
			return -1
		case p.Wait == nil:
			runs = i
		case p.Wait.Left && left < 0:
			left = i
		}
	}
	if runs < 0 {
		return left
	}
	return runs
}

// MovesNote says where a guest runs that moves, and where else it has a port, with the reasons.
func MovesNote(at []across.Station, ports []api.Port, chosen int) string {
	text := fmt.Sprintf("port %s moves between hosts: its guest runs on host %s", printable.Text(at[chosen].Port),
		at[chosen].Host)
	if ports[chosen].Wait != nil {
		text = fmt.Sprintf("port %s moves between hosts and is active on none: on host %s %s",
			printable.Text(at[chosen].Port), at[chosen].Host, ports[chosen].Reason)
	}
	var parts []string
	for i, p := range ports {
		if i != chosen {
			parts = append(parts, fmt.Sprintf("on host %s it is silent: %s", at[i].Host, p.Reason))
		}
	}
	return text + "; " + strings.Join(parts, "; ")
}
