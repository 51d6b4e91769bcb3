package controller

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"heddle/internal/controller/rpc"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// turnTime is how often a controller looks whether it is its turn to start anew, as etcd reads whom it trusts when it
// starts alone.
const turnTime = 2 * time.Second

// rotate keeps the authority what the store says, until ctx ends: whichever controller makes a step of a rotation, all
// of them trust and issue by it at once.
func (s *self) rotate(ctx context.Context, st *store.Store, front rpc.Front, log *slog.Logger) {
	for b := range st.Watch(ctx, 0) {
		for _, e := range b.Events {
			if e.Key != authorityKey() || e.Object == nil {
				continue
			}
			changed, err := s.take(e.Object.Doc)
			if err != nil {
				log.Error("a step of a rotation of the root is not taken", "err", err)
			}
			if !changed {
				continue
			}
			log.Info("the cluster's roots have changed", "stage", s.authority.Get().Document.Stage)
			front.NewAuthority()
		}
	}
}

// turns starts this controller anew when its etcd trusts other roots than the cluster has, and it is its turn.
func (s *self) turns(ctx context.Context, front rpc.Front, anew chan<- error) {
	if !s.exports {
		return
	}
	for {
		select {
		case <-time.After(turnTime):
		case <-ctx.Done():
			return
		}
		if !front.MyTurn(ctx) {
			continue
		}
		select {
		case anew <- fmt.Errorf("%w: etcd takes in the roots of the cluster", errAnew):
		default: // it starts anew already
		}
	}
}

// take takes in the authority as the store keeps it. The controller has a certificate of it before anybody is told.
func (s *self) take(text []byte) (changed bool, err error) {
	doc, err := pki.Decode(text)
	if err != nil {
		return false, err
	}
	before := s.authority.Get()
	if doc.Stage == before.Document.Stage && doc.Changed.Equal(before.Document.Changed) {
		return false, nil
	}
	if err := s.open(doc); err != nil {
		return false, err
	}
	return true, s.keepAuthority(text)
}
