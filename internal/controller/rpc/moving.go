package rpc

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/moves"
)

// moveCalls are what people call to find and move ports.
type moveCalls struct {
	moves.Service
	locator
}

// moveCallsAt are those of a server.
func moveCallsAt(s *Server) moveCalls { return moveCalls{movesAt(s), locatorOf(s)} }

// movesAt is what moves ports at a server.
func movesAt(s *Server) moves.Service {
	return moves.Service{Options: moves.Options{Log: s.Log, Agent: s.askAgent,
		Look: func(ctx context.Context, confirmed bool) *moves.Sight {
			q, stale := &controllerv1.GetHostsHereRequest{Reports: true}, ""
			if !confirmed {
				return s.seenByMoves(s.askHosts(ctx, q), stale)
			}
			there, stale := s.everywhere().askAll(ctx, q)
			return s.seenByMoves(there, stale)
		}}}
}

// seenByMoves is what all controllers know of the hosts, for who moves ports.
func (s *Server) seenByMoves(there *fanout.Answers, stale string) *moves.Sight {
	out := &moves.Sight{Away: there.Away, Stale: stale, Host: func(name string) (*moves.Host, error) {
		s.fleet.mu.Lock()
		defer s.fleet.mu.Unlock()
		return s.everywhere().forMoves(s.fleet.names[name], there)
	}}
	f := s.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.sorted() {
		report, connected := there.ReportOf(h.known())
		if report == nil {
			continue
		}
		for _, p := range report.GetPorts() {
			out.Ports = append(out.Ports, moves.Port{HostPort: p, Host: h.doc.Name, Connected: connected,
				Meant: h.meant(there)})
		}
	}
	return out
}

// forMoves is a host for who moves ports; nil for none. The caller holds the lock of the fleet.
func (s *everywhere) forMoves(h *host, there *fanout.Answers) (*moves.Host, error) {
	if h == nil {
		return nil, nil
	}
	set, err := s.fleet.target(h)
	if err != nil {
		return nil, err
	}
	return &moves.Host{Shown: s.shown(h, there), Meant: h.meant(there), Content: set, Lacks: h.lacks}, nil
}
