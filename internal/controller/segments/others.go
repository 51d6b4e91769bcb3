package segments

import (
	"context"
	"errors"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// otherPause is after what time a controller that does not answer is asked again.
const otherPause = time.Second

// FollowOthers keeps a stream from each other controller, until ctx ends.
func (h *Hub) FollowOthers(ctx context.Context, roster *peers.Roster) {
	var all sync.WaitGroup
	defer all.Wait()
	following := map[string]context.CancelFunc{}
	for {
		now := map[string]bool{}
		for _, c := range roster.Others() {
			now[c.ID] = true
			if following[c.ID] == nil {
				var sub context.Context
				sub, following[c.ID] = context.WithCancel(ctx)
				all.Go(func() { h.followOther(sub, roster, c.ID) })
			}
		}
		for id, stop := range following {
			if !now[id] {
				stop()
				delete(following, id)
			}
		}
		select {
		case <-time.After(otherPause):
		case <-ctx.Done():
			return
		}
	}
}

// followOther keeps a stream from one other controller, whatever its address is.
func (h *Hub) followOther(ctx context.Context, roster *peers.Roster, id string) {
	for ctx.Err() == nil {
		for _, c := range roster.Others() {
			if c.ID != id {
				continue
			}
			err := h.hear(ctx, roster, c)
			if ctx.Err() == nil {
				h.Log.Debug("another controller does not say who is where on overlay segments", "controller",
					peers.NameOf(c), "err", err)
			}
			h.Lost(ctx, id)
		}
		select {
		case <-time.After(otherPause):
		case <-ctx.Done():
		}
	}
}

// hear takes in what hosts of another controller say, until its stream ends.
func (h *Hub) hear(ctx context.Context, roster *peers.Roster, c peers.Controller) error {
	k, err := roster.LinkTo(c)
	if err != nil {
		return err
	}
	stream, err := k.FollowSegmentsHere(ctx, &controllerv1.FollowSegmentsHereRequest{})
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	for {
		m, err := stream.Receive()
		if err != nil {
			return err
		}
		if err := h.Learn(c.ID, m); err != nil {
			return errors.Join(err, stream.Close())
		}
	}
}
