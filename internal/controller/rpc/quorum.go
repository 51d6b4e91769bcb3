package rpc

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"connectrpc.com/connect/v2"
)

// quorum is whether this controller is cut off from the majority of the controllers.
type quorum struct {
	// alone says why it serves no hosts; nil while it does.
	alone atomic.Pointer[error]
}

// watch sends the hosts away while this controller is cut off from the majority: another one may not be.
func (q *quorum) watch(ctx context.Context, s *Server) {
	tick := time.NewTicker(s.QuorumTime / 4)
	defer tick.Stop()
	var since time.Time // of the loss
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		err := s.Store.Stale()
		switch {
		case err == nil:
			since = time.Time{}
			if q.alone.Swap(nil) != nil {
				s.Log.Info("this controller has a majority of the controllers again")
			}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= s.QuorumTime && q.alone.Load() == nil:
			why := fmt.Errorf("this controller is cut off from the majority of the controllers, and may have an old "+
				"definition: %w", err)
			q.alone.Store(&why)
			s.Log.Warn("no majority: the hosts are sent to other controllers, and reads are marked as stale", "err",
				err)
			s.fleet.endAll(why)
		}
	}
}

// refuse is an error while this controller may not serve hosts.
func (q *quorum) refuse() error {
	if why := q.alone.Load(); why != nil {
		return connect.NewError(connect.CodeUnavailable, (*why).Error())
	}
	return nil
}
