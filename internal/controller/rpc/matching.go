package rpc

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/match"
	"heddle/internal/controller/part"
	"heddle/internal/slice"
)

// matching is what is known of adapters and hosts between which ports may move.
func matching(f *fleet, adapters []part.Adapter, hosts []string) match.Known {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := match.Known{Ports: map[part.Adapter][]match.Port{}, Bound: map[part.Adapter]string{},
		Content: map[string]*slice.Set{}}
	for _, a := range adapters {
		for _, p := range f.adapters.Ports(a) {
			k.Ports[a] = append(k.Ports[a], match.Port{Host: p.Host, Switch: p.Switch, Group: p.Group,
				Generation: p.Generation, Runs: p.Runs})
		}
		if b := f.adapters.Bindings.Of(a); b != nil {
			k.Bound[a] = b.Host
		}
	}
	for _, id := range hosts {
		if h := f.hosts[id]; h != nil {
			if set, err := f.target(h); err == nil {
				k.Content[id] = set
			}
		}
	}
	return k
}

// ShareMoves takes in what another controller knows of moves, and answers with what this one does.
func (o others) ShareMoves(ctx context.Context, q *controllerv1.ShareMovesRequest) (
	*controllerv1.ShareMovesResponse, error) {
	peer, err := controllerOf(ctx)
	if err != nil {
		return nil, err
	}
	o.match.Learn(peer.Name.ID, q.GetMoves())
	now, _ := o.match.SharedFor(peer.Name.ID)
	return &controllerv1.ShareMovesResponse{Moves: now}, nil
}

// ShareAdapters takes in which adapters run on hosts of another controller, and answers with those that run here too.
func (o others) ShareAdapters(ctx context.Context, q *controllerv1.ShareAdaptersRequest) (
	*controllerv1.ShareAdaptersResponse, error) {
	peer, err := controllerOf(ctx)
	if err != nil {
		return nil, err
	}
	book := o.fleet.adapters
	book.Learn(peer.Name.ID, q.GetAdapters())
	return &controllerv1.ShareAdaptersResponse{Adapters: book.Running(q.GetAdapters())}, nil
}
