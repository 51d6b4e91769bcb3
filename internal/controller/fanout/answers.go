package fanout

import (
	"context"
	"log/slog"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/platform/peers"
)

// Answers is what the other controllers say of hosts that are not connected here.
type Answers struct {
	Hosts map[string]*controllerv1.HostHere // by id
	// Away are the controllers that do not answer.
	Away []string
	// Known is what agents say that they know, by their hosts' ids.
	Known map[string]string
}

// Ask asks the other controllers about hosts.
func Ask(ctx context.Context, roster *peers.Roster, log *slog.Logger, q *controllerv1.GetHostsHereRequest) *Answers {
	e := &Answers{Hosts: map[string]*controllerv1.HostHere{}, Known: map[string]string{}}
	answers := peers.AskOthers(ctx, roster, peers.AskTime+q.GetPatience().AsDuration(),
		func(ctx context.Context, k *peers.Link) (*controllerv1.GetHostsHereResponse, error) {
			return k.GetHostsHere(ctx, q)
		})
	for _, a := range answers {
		if a.Err != nil {
			log.Debug("another controller does not answer", "controller", peers.NameOf(a.Of), "err", a.Err)
			e.Away = append(e.Away, peers.NameOf(a.Of))
			for _, h := range roster.Remembered(a.Of.ID, nil, false) {
				e.Take(h)
			}
			continue
		}
		for _, h := range roster.Remembered(a.Of.ID, a.Got.GetHosts(), true) {
			e.Take(h)
		}
		if len(q.GetNames()) == 0 {
			roster.Remember(a.Of.ID, a.Got.GetHosts())
		}
		for _, h := range a.Got.GetHosts() {
			e.Take(h)
			if n := int(h.GetKnown()); n > 0 && n <= len(a.Got.GetKnown()) {
				e.Known[h.GetHost().GetId()] = a.Got.GetKnown()[n-1]
			}
		}
	}
	return e
}

// Take takes in what one controller says of a host: that it is connected counts more than that it was, and what is
// newer more than what is older.
func (e *Answers) Take(h *controllerv1.HostHere) {
	id := h.GetHost().GetId()
	was := e.Hosts[id]
	if was == nil || rank(h) > rank(was) ||
		rank(h) == rank(was) && h.GetHost().GetSince().AsTime().After(was.GetHost().GetSince().AsTime()) {
		e.Hosts[id] = h
	}
}

// rank tells better knowledge of a host from worse.
func rank(h *controllerv1.HostHere) int {
	switch {
	case h.GetConnected() && !h.GetHost().GetStale():
		return 2
	case h.GetConnected():
		return 1
	}
	return 0
}

// Starts reports whether an adapter is being connected on a host, by what the controller said that it is connected to.
func (e *Answers) Starts(host string, n part.Adapter) bool {
	for _, a := range e.Hosts[host].GetStarting() {
		if a.GetVm() == n.VM && a.GetAdapter() == n.Name {
			return true
		}
	}
	return false
}
