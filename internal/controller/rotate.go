package controller

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"heddle/internal/controller/pki"
	"heddle/internal/controller/rpc"
	"heddle/internal/controller/store"
)

// turnTime is how long one controller has to start anew before the next one does, when a rotation has ended.
const turnTime = 20 * time.Second

// rotate keeps the authority what the store says, until ctx ends: whichever controller makes a step of a rotation, all
// of them trust and issue by it at once. etcd reads whom it trusts when it starts alone: where there are several
// members, they start anew after a rotation, one after the other.
func (s *self) rotate(ctx context.Context, st *store.Store, front rpc.Front, anew chan<- error, log *slog.Logger) {
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
			stage := s.authority.Get().Document.Stage
			log.Info("the cluster's roots have changed", "stage", stage)
			front.NewAuthority()
			if stage == pki.Steady && s.exports {
				go s.turn(ctx, st, anew)
			}
		}
	}
}

// turn starts this controller anew when it is its turn; a controller that is alone has nobody to be known by.
func (s *self) turn(ctx context.Context, st *store.Store, anew chan<- error) {
	var ids []string
	for _, o := range st.List(rpc.ControllerKind) {
		ids = append(ids, o.Name)
	}
	slices.Sort(ids)
	if len(ids) < 2 {
		return
	}
	select {
	case <-time.After(time.Duration(slices.Index(ids, s.ID)+1) * turnTime):
	case <-ctx.Done():
		return
	}
	select {
	case anew <- fmt.Errorf("%w: the root was rotated", errAnew):
	default: // it starts anew already
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
