package rpc

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/platform/peers"
)

// mostPatience bounds how long one controller waits for hosts on behalf of another.
const mostPatience = 5 * time.Second

// everywhere is the fleet as all controllers together know it.
type everywhere struct {
	fleet  *fleet
	roster *peers.Roster
	log    *slog.Logger
}

// GetHostsHere is what this controller knows of hosts, for another one.
func (s *Server) GetHostsHere(ctx context.Context, q *controllerv1.GetHostsHereRequest) (
	*controllerv1.GetHostsHereResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	if q.GetRevision() > 0 {
		patience := min(q.GetPatience().AsDuration(), mostPatience)
		if err := s.fleet.settled(ctx, q.GetRevision(), q.GetNames(), patience); err != nil {
			return nil, err
		}
	}
	out := &controllerv1.GetHostsHereResponse{Hosts: s.hostsHere(q.GetNames(), q.GetReports())}
	s.fleet.whatTheyKnow(out)
	return out, nil
}

// hostsHere is what this controller has heard of hosts, from themselves. Of a host that has said nothing since this
// controller started, it says since when that is, to who asks for that host's report: it may have said something
// before.
func (s *everywhere) hostsHere(names []string, reports bool) (list []*controllerv1.HostHere) {
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	take := func(h *host) {
		silent := h != nil && h.conn == nil && h.report == nil
		if h == nil || silent && !(reports && len(names) > 0) {
			return
		}
		here := &controllerv1.HostHere{Host: s.host(h), Connected: h.conn != nil}
		if h.conn != nil {
			here.Together, here.ChecksMeant = f.together.Made(h.id), h.conn.checksMeant()
		}
		if reports {
			here.Report, here.Starting = h.report.message(), f.adapters.Starts.Here(h.id)
		}
		list = append(list, here)
	}
	if len(names) > 0 {
		for _, name := range names {
			take(f.names[name])
		}
		return list
	}
	for _, h := range f.hosts {
		take(h)
	}
	return list
}

// host is a host as this controller knows it. The caller holds the lock of the fleet.
func (s *everywhere) host(h *host) *controllerv1.Host {
	state, why := s.fleet.state(h)
	out := &controllerv1.Host{Name: h.doc.Name, Id: h.id,
		Labels: s.fleet.inventory.Labels(h.doc.Name, h.doc.Labels), State: state, Agent: h.agent,
		Revision: withheld{s.fleet}.revisionOf(h), Problems: why, Since: timestamppb.New(h.since),
		Ports: int32(h.report.count()), Address: h.address, Switches: h.switches}
	out.HostPorts = contents{s.fleet}.hostPorts(h)
	if h.conn != nil || h.report != nil {
		out.Controller = peers.NameOf(s.roster.This)
	}
	if h.conn != nil {
		out.Unknown = unknownTo(h, h.lacks)
	}
	return out
}

// askHosts asks the other controllers about hosts.
func (s *everywhere) askHosts(ctx context.Context, q *controllerv1.GetHostsHereRequest) *fanout.Answers {
	return fanout.Ask(ctx, s.roster, s.log, q)
}

// shown is a host as people see it, wherever it is connected. The caller holds the lock of the fleet.
func (s *everywhere) shown(h *host, e *fanout.Answers) *controllerv1.Host {
	out := s.host(h)
	there := e.Hosts[h.id]
	switch {
	case h.conn != nil:
		return out
	case there.GetConnected():
		return there.GetHost()
	case there != nil && there.GetHost().GetSince().AsTime().After(h.since):
		out = there.GetHost()
	}
	if len(e.Away) > 0 {
		out.Stale = true
		out.Problems = append(slices.Clone(out.GetProblems()), "it may be connected to controller "+
			strings.Join(e.Away, " or ")+", which does not answer")
	}
	return out
}

// remember asks the other controllers from time to time which hosts they have, until ctx ends: where one of them is
// lost, this one knows when its hosts were there last, and what they had.
func (s *everywhere) remember(ctx context.Context) {
	for {
		select {
		case <-time.After(rememberTime):
		case <-ctx.Done():
			return
		}
		if len(s.roster.Others()) > 0 {
			s.askHosts(ctx, &controllerv1.GetHostsHereRequest{})
		}
	}
}

// rememberTime is how often that is.
const rememberTime = 10 * time.Second

// known is the host as this controller has heard of it from itself. The caller holds the lock.
func (h *host) known() fanout.Host {
	k := fanout.Host{ID: h.id, Name: h.doc.Name, Labels: h.doc.Labels, Here: h.conn != nil, Since: h.since}
	if h.report != nil {
		k.Report = h.report
	}
	return k
}

// meant is the host's id where it knows the fields which say what a call about a move means; "" where its agent is of
// an earlier version, which refuses them. The caller holds the lock.
func (h *host) meant(there *fanout.Answers) string {
	if h.conn.checksMeant() || h.conn == nil && there.Hosts[h.id].GetChecksMeant() {
		return h.id
	}
	return ""
}

// checksMeant reports whether the host of the connection says so; not without a connection.
func (c *conn) checksMeant() bool { return c != nil && c.checks }

// moveTime is how long a host may be between two controllers, before it counts as disconnected.
const moveTime = 5 * time.Second

// await waits until the hosts have that revision active, or cannot, for as long as patience, and says who has not.
func (s *everywhere) await(ctx context.Context, revision int64, names []string, patience time.Duration) (
	[]*controllerv1.HostProblem, error) {
	until := time.Now().Add(patience)
	for {
		round := max(0, min(time.Until(until), mostPatience))
		asked := make(chan *fanout.Answers, 1)
		go func() {
			if len(s.roster.Others()) == 0 {
				asked <- &fanout.Answers{}
				return
			}
			asked <- s.askHosts(ctx, &controllerv1.GetHostsHereRequest{Names: names, Revision: revision,
				Patience: durationpb.New(round)})
		}()
		if len(s.roster.Others()) == 0 {
			round = max(0, time.Until(until))
		}
		err := s.fleet.settled(ctx, revision, names, round)
		e := <-asked
		if err != nil {
			return nil, err
		}
		list, pending := s.waiting(names, e)
		if len(pending) == 0 || !time.Now().Before(until) {
			return list, nil
		}
		select { // those that nobody waits for
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// waiting are those of the hosts that do not have the newest version active; pending: those that may have it soon.
func (s *everywhere) waiting(names []string, e *fanout.Answers) (list []*controllerv1.HostProblem, pending []string) {
	s.fleet.mu.Lock()
	defer s.fleet.mu.Unlock()
	for _, name := range names {
		h := s.fleet.names[name]
		if h == nil { // it was taken out of the cluster
			continue
		}
		now := s.shown(h, e)
		why := now.GetProblems()
		switch now.GetState() {
		case controllerv1.HostState_HOST_STATE_UP, controllerv1.HostState_HOST_STATE_WARNING,
			controllerv1.HostState_HOST_STATE_DOWN:
			if !now.GetStale() && len(now.GetUnknown()) == 0 {
				continue
			}
			if now.GetStale() {
				pending = append(pending, name) // it is on its way to another controller
			} else {
				why = now.GetUnknown()
			}
		case controllerv1.HostState_HOST_STATE_PENDING:
			pending = append(pending, name)
			why = append([]string{"it has not answered yet"}, why...)
		case controllerv1.HostState_HOST_STATE_DISCONNECTED:
			if e.Hosts != nil && time.Since(now.GetSince().AsTime()) < moveTime {
				pending = append(pending, name)
			}
			why = append([]string{"it is not connected"}, why...)
		}
		list = append(list, &controllerv1.HostProblem{Host: name, Problems: why})
	}
	return list, pending
}
