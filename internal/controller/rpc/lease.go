package rpc

import (
	"context"
	"fmt"
	"slices"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/staticports"
	"heddle/internal/platform/peers"
)

// portLease is for how long a host that has lost its controllers holds its static ports, unless the operator says
// another time.
const portLease = time.Minute

// holding says what stands in the way of a claim.
type holding struct {
	why string // "" for nothing
	// lease: the host is lost and holds the port for a while. That ends by itself, and an operator may override it; it
	// silences nobody, and keeps no guest from starting.
	lease bool
}

// held says what keeps a port where it is bound, other than that the host reports here that the adapter runs: the guest
// is being started there, it runs on that host, which is connected to another controller, or the host is lost and its
// lease is not over.
func (s claimant) held(ctx context.Context, h *host, b *staticports.Binding) holding {
	s.fleet.mu.Lock()
	was := s.fleet.hosts[b.Host]
	ask := was != nil && was != h && was.conn == nil
	starts := was != nil && was != h && was.conn != nil && s.fleet.adapters.Starts.On(was.id, b.Adapter)
	s.fleet.mu.Unlock()
	switch {
	case starts:
		return holding{why: adapters.StartsText(b.Adapter, s.keeper().nameOf(was))}
	case !ask:
		return holding{}
	}
	name := s.keeper().nameOf(was)
	there := s.askWhereItStarts(ctx, name, b)
	if at := there.hosts[b.Host]; at.GetConnected() && !at.GetHost().GetStale() {
		if there.starts(b.Host, b.Adapter) {
			return holding{why: adapters.StartsText(b.Adapter, name)}
		}
		if runs, _ := s.lastSaid(there, was, b.Adapter); !runs {
			return holding{}
		}
		return holding{why: fmt.Sprintf("adapter %s of VM %s runs on host %s", b.Adapter.Name, b.Adapter.VM, name)}
	}
	if runs, known := s.lastWord(there, was, b.Adapter); known && !runs {
		return holding{} // it said so before it was lost
	}
	lost := s.lostFor(there, was)
	if lost >= s.PortLease {
		return holding{}
	}
	return holding{lease: true, why: fmt.Sprintf("static port %s is held by host %s, which has no controller for %s: "+
		"another host gets it in %s, or at once by heddle port static settle --force", b.ID, name,
		lost.Round(time.Second), (s.PortLease - lost).Round(time.Second))}
}

// askWhereItStarts asks the other controllers for a host's word, and waits a while where the adapter is being connected
// there: the host may be about to say what came of it.
func (s claimant) askWhereItStarts(ctx context.Context, host string, b *staticports.Binding) *elsewhere {
	for end := time.Now().Add(stopTime); ; {
		there := s.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: []string{host}, Reports: true})
		if !there.starts(b.Host, b.Adapter) || time.Now().After(end) {
			return there
		}
		select {
		case <-ctx.Done():
			return there
		case <-time.After(stopLook):
		}
	}
}

// starts reports whether an adapter is being connected on a host, by what the controller said that it is connected to.
func (e *elsewhere) starts(host string, n nic) bool {
	for _, a := range e.hosts[host].GetStarting() {
		if a.GetVm() == n.VM && a.GetAdapter() == n.Name {
			return true
		}
	}
	return false
}

// lastSaid is whether a host said last that an adapter runs there; known is false where nobody remembers a word of it.
func (s claimant) lastSaid(there *elsewhere, was *host, n nic) (is, known bool) {
	s.fleet.mu.Lock()
	list, _ := there.reportOf(was)
	s.fleet.mu.Unlock()
	if list == nil {
		return false, false
	}
	return slices.ContainsFunc(list.GetPorts(), func(p *controllerv1.HostPort) bool {
		of, here := adapters.Runs(p)
		return here && of == n
	}), true
}

// lastWord is what a lost host said last of an adapter, before it was lost; known is false where a controller may have
// heard more: one that does not answer, or one that has started since, and remembers nothing of the host; and where the
// host was lost while it connected the adapter.
func (s claimant) lastWord(there *elsewhere, was *host, n nic) (is, known bool) {
	if len(there.away) > 0 {
		return false, false
	}
	s.fleet.mu.Lock()
	since, heard := was.since, was.report != nil
	starts := s.fleet.adapters.Starts.On(was.id, n) || there.starts(was.id, n)
	s.fleet.mu.Unlock()
	if starts {
		return false, false
	}
	if at := there.hosts[was.id]; at != nil && at.GetHost().GetSince().AsTime().After(since) {
		heard = at.GetReport() != nil
	}
	if !heard {
		return false, false
	}
	return s.lastSaid(there, was, n)
}

// lostFor is for how long a host has been without a controller for certain: since the last one that had it saw it go.
// This controller counts from when it knows the host, and while others do not answer from when they began not to.
func (s claimant) lostFor(there *elsewhere, was *host) time.Duration {
	s.fleet.mu.Lock()
	since := was.since
	s.fleet.mu.Unlock()
	if at := there.hosts[was.id]; at != nil && !at.GetConnected() {
		since = peers.Later(since, at.GetHost().GetSince().AsTime())
	}
	if len(there.away) > 0 {
		since = peers.Later(since, s.Roster.SilentSince(there.away))
	}
	return max(0, time.Since(since))
}

// whoStopped asks the other controllers about hosts, by their names, and says on which of them an adapter does not run
// any more, for certain. A host that was removed runs nothing.
func (s claimant) whoStopped(ctx context.Context, names []string) adapters.Stopped {
	there := &elsewhere{}
	if len(names) > 0 {
		there = s.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: names, Reports: true})
	}
	return s.stoppedBy(there)
}

func (s claimant) stoppedBy(there *elsewhere) adapters.Stopped {
	return func(n nic, id string) bool {
		s.fleet.mu.Lock()
		h := s.fleet.hosts[id]
		s.fleet.mu.Unlock()
		return h == nil || s.stopped(there, h, n)
	}
}

// stopped reports whether an adapter does not run on a host any more, for certain: the host says so to the controller
// that has it, or has been lost for as long as its lease lasts. What it said before it was lost is not enough: the
// controller that it said more to may be away.
func (s claimant) stopped(there *elsewhere, h *host, n nic) bool {
	if at := there.hosts[h.id]; at.GetConnected() && !at.GetHost().GetStale() {
		runs, known := s.lastSaid(there, h, n)
		return known && !runs
	}
	return s.lostFor(there, h) >= s.PortLease
}
