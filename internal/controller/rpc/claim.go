package rpc

import (
	"context"
	"errors"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/rpcerrors"
)

// claimTime bounds how long the other controllers may take to say whether a host is connected to them: one of them may
// have to ask the host.
const claimTime = pongTime + peers.AskTime

// claim says to all other controllers that a host has connected here: older connections of it end. Where another
// machine with the host's certificate is connected to one of them and answers, this one is refused. A controller that
// does not answer is not waited for: no host is kept from its definition because of that.
func (s *Server) claim(ctx context.Context, h *host, c *conn) error {
	q := &controllerv1.ClaimHostRequest{Host: h.id, Start: []byte(c.start), Conversation: c.conversation}
	for _, a := range peers.AskOthers(ctx, s.Roster, claimTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.ClaimHostResponse, error) {
		return k.ClaimHost(ctx, q)
	}) {
		if other := a.Got.GetOther(); a.Err == nil && other != "" {
			return s.fleet.twice(h.doc.Name, other+" (by controller "+peers.NameOf(a.Of)+")", c.address)
		}
	}
	return nil
}

// ClaimHost makes room for a host that has connected to another controller.
func (s *Server) ClaimHost(ctx context.Context, q *controllerv1.ClaimHostRequest) (*controllerv1.ClaimHostResponse,
	error) {
	if _, err := controllerOf(ctx); err != nil {
		return nil, err
	}
	old := s.fleet.connection(q.GetHost())
	switch {
	case old == nil:
		s.match.WentElsewhere(q.GetHost())
		return &controllerv1.ClaimHostResponse{}, nil
	case old.start == string(q.GetStart()) && old.conversation > q.GetConversation():
		return &controllerv1.ClaimHostResponse{}, nil // it came back here meanwhile
	case old.start != string(q.GetStart()) && s.fleet.answers(ctx, old):
		return &controllerv1.ClaimHostResponse{Other: old.address}, nil
	}
	old.end(errors.New("the host has connected to another controller"))
	s.match.WentElsewhere(q.GetHost())
	return &controllerv1.ClaimHostResponse{}, nil
}

// connection is that of a host, nil for none.
func (f *fleet) connection(id string) *conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hosts[id]; h != nil {
		return h.conn
	}
	return nil
}

// present makes sure that this controller knows the host: one that joined at another controller a moment ago may be new
// to this one.
func (s *Server) present(ctx context.Context, id string) error {
	if s.fleet.knows(id) {
		return nil
	}
	if err := s.Store.Sync(ctx); err != nil {
		return rpcerrors.OfStore(err)
	}
	if _, _, ok := s.hostOf(id); !ok {
		return rpcerrors.Removed()
	}
	ctx, cancel := context.WithTimeout(ctx, peers.AskTime)
	defer cancel()
	if err := until(ctx, s.fleet, func() bool { return s.fleet.hosts[id] != nil }); err != nil {
		return connect.NewError(connect.CodeUnavailable, "the controller is starting")
	}
	return nil
}

func (f *fleet) knows(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hosts[id] != nil
}
