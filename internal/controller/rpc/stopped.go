package rpc

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/part"
)

// portLease is for how long a host that has lost its controllers holds its static ports, unless the operator says
// another time.
const portLease = time.Minute

// whoStopped asks the other controllers about hosts, by their names, and says on which of them an adapter does not run
// any more, for certain.
func whoStopped(s *Server) func(ctx context.Context, names []string) adapters.Stopped {
	return func(ctx context.Context, names []string) adapters.Stopped {
		there := &fanout.Answers{}
		if len(names) > 0 {
			there = s.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: names, Reports: true})
		}
		return stoppedBy(s.fleet, there, s.PortLease, s.Roster.SilentSince)
	}
}

// stoppedBy reports by what the other controllers say whether an adapter does not run on a host any more, for certain:
// the host says so to the controller that has it, or was lost for as long as its lease lasts. What it said before it
// was lost is not enough: the controller that it said more to may be away. A host that was removed runs nothing.
func stoppedBy(f *fleet, there *fanout.Answers, lease time.Duration,
	silent func(away []string) time.Time) adapters.Stopped {
	return func(n part.Adapter, id string) bool {
		h, is := knownHost(f, func() *host { return f.hosts[id] })
		if !is {
			return true
		}
		if at := there.Hosts[id]; at.GetConnected() && !at.GetHost().GetStale() {
			runs, known := there.LastSaid(h, n)
			return known && !runs
		}
		return there.LostFor(h, silent) >= lease
	}
}
