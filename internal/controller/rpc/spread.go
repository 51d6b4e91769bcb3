package rpc

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// mostMoved is how many hosts are sent to other controllers at a time.
const mostMoved = 64

// whereTo is what a host is to be told about the controllers: all of them, where it does not know them, and the one to
// move to, if any.
func (s *Server) whereTo(c *conn) (list []string, moveTo string) {
	s.fleet.mu.Lock()
	roster := s.fleet.roster
	moveTo, c.moveTo = c.moveTo, ""
	s.fleet.mu.Unlock()
	if c.roster != roster {
		c.roster, list = roster, s.Controllers()
	}
	return list, moveTo
}

// GetController says how this controller stands.
func (s *Server) GetController(ctx context.Context, q *controllerv1.GetControllerRequest) (
	*controllerv1.GetControllerResponse, error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	return s.standing(ctx, q.GetBrief()), nil
}

// standing is how this controller stands: brief says that etcd is not asked.
func (s *Server) standing(ctx context.Context, brief bool) *controllerv1.GetControllerResponse {
	out := &controllerv1.GetControllerResponse{Version: s.This.Version, Hosts: int32(s.fleet.count()),
		Epoch: s.Epoch, Carriers: carriers(s.fleet, s.Cluster()),
		Store: s.Self.StoreID, EtcdCluster: s.Self.Etcd.Cluster, EtcdMember: s.Self.Etcd.Member,
		NoRoom: s.Self.noRoom()}
	for _, root := range s.Self.EtcdRoots {
		out.EtcdRoots = append(out.EtcdRoots, root.String())
	}
	if err := s.Store.Stale(); err != nil {
		out.Stale = err.Error()
	}
	if s.Members == nil || brief {
		return out
	}
	st, _ := s.Members.Status(ctx) // what it says besides an error is right
	out.Revision = st.Revision
	for _, m := range st.Members {
		if m.Self && m.Health != nil {
			out.Lag = m.Health.Lag
		}
	}
	return out
}

// count is how many hosts are connected.
func (f *fleet) count() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if h.conn != nil {
			n++
		}
	}
	return n
}

// spread sends hosts to controllers that have fewer, as after a restart of one, until ctx ends.
func spread(ctx context.Context, s *Server) {
	for {
		select {
		case <-time.After(s.SpreadTime):
		case <-ctx.Done():
			return
		}
		if len(s.Others()) > 0 && s.quorum.refuse() == nil {
			spreadOnce(ctx, s)
		}
	}
}

// spreadOnce sends as many hosts away as this controller has too many: those that another one has too few.
func spreadOnce(ctx context.Context, s *Server) {
	mine := s.fleet.count()
	if mine < 2 {
		return
	}
	counts, total := map[string]int{}, mine
	for _, a := range peers.AskOthers(ctx, s.Roster, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.GetControllerResponse, error) {
		return k.GetController(ctx, &controllerv1.GetControllerRequest{})
	}) {
		if a.Err == nil && a.Got.GetStale() == "" && a.Got.GetEpoch() == s.Epoch {
			counts[a.Of.Address] = int(a.Got.GetHosts())
			total += int(a.Got.GetHosts())
		}
	}
	moves := movesOf(mine, total, counts)
	if len(moves) == 0 {
		return
	}
	s.Log.Info("hosts are sent to controllers that have fewer", "here", mine, "all", total, "moved", len(moves))
	s.fleet.move(moves)
}

// movesOf says where the hosts go that a controller has too many: a tenth more than its share is not too many.
func movesOf(mine, total int, counts map[string]int) (to []string) {
	share := (total + len(counts)) / (len(counts) + 1) // rounded up
	if mine <= share+share/10 {
		return nil
	}
	for address, n := range counts {
		for ; n < share && mine > share && len(to) < mostMoved; n++ {
			to, mine = append(to, address), mine-1
		}
	}
	return to
}

// move tells as many hosts to go to these controllers.
func (f *fleet) move(to []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.hosts {
		if len(to) == 0 {
			return
		}
		if state, _ := f.state(h); h.conn != nil && state != controllerv1.HostState_HOST_STATE_PENDING {
			h.conn.moveTo, to = to[0], to[1:]
			h.conn.poke()
		}
	}
}
