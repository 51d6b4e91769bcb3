package probes

import (
	"context"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
)

// otherPause is how often other controllers are asked for what their hosts found.
const otherPause = 2 * time.Second

// AskOthers asks the other controllers for what their hosts found, until ctx ends. known: a host is of the cluster.
func (h *Hub) AskOthers(ctx context.Context, roster *peers.Roster, known func(id string) bool) {
	asked := map[string]bool{}
	for {
		select {
		case <-time.After(otherPause):
		case <-ctx.Done():
			return
		}
		now := map[string]bool{}
		for _, a := range h.askAll(ctx, roster) {
			now[a.Of.ID] = true
			switch {
			case a.Err == nil:
				h.Learn(a.Of.ID, a.Got, known)
			case ctx.Err() == nil:
				h.Log.Debug("another controller does not say what its hosts found by probes", "controller",
					peers.NameOf(a.Of), "err", a.Err)
				h.Lost(a.Of.ID)
			}
		}
		for id := range asked {
			if !now[id] {
				h.Lost(id)
			}
		}
		asked = now
	}
}

// askAll asks each other controller for what it has not said yet, all at the same time.
func (h *Hub) askAll(ctx context.Context,
	roster *peers.Roster) (list []peers.Answer[*controllerv1.ReadProbesHereResponse]) {
	got := make(chan peers.Answer[*controllerv1.ReadProbesHereResponse])
	others := roster.Others()
	for _, c := range others {
		go func() {
			got <- peers.AskThese(ctx, roster, []peers.Controller{c}, peers.AskTime, func(ctx context.Context,
				k *peers.Link) (*controllerv1.ReadProbesHereResponse, error) {
				return k.ReadProbesHere(ctx, h.Asks(c.ID))
			})[0]
		}()
	}
	for range others {
		list = append(list, <-got)
	}
	return list
}
