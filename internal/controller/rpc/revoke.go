package rpc

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

const (
	// revocationsKind is the kind of the one object with the list of what an earlier version revoked.
	revocationsKind store.Kind = "revocations"
	// revokedKind is the kind of the objects that each say of one host or controller that it is revoked: there is room
	// for the next one whatever was revoked before.
	revokedKind store.Kind = "revoked"
	// mostRevokedPruned is how many that nobody needs any more are removed with another one.
	mostRevokedPruned = 32
)

// revocationsKey is the key of that list.
func revocationsKey() store.Key { return store.Key{Kind: revocationsKind, Name: "current"} }

// revocations knows what is revoked, and whose certificates count no more.
type revocations struct {
	store Store
	gate  *pki.Gate
	log   *slog.Logger
	now   func() time.Time
}

// Revoking is the change that revokes a host or a controller with all its certificates. It is written with what it
// belongs to.
func Revoking(n identity.Name, e pki.Revocation) (store.Change, error) {
	text, err := json.Marshal(e)
	return store.Change{Key: store.Key{Kind: revokedKind, Name: pki.RevokedAs(n)}, Doc: text, IfVersion: store.Any,
		Vital: true}, err
}

// revoking is Revoking, with the removal of some of those that nobody needs any more; clock: there is no sign that this
// controller's is wrong, by which others would be removed too early.
func (r *revocations) revoking(n identity.Name, e pki.Revocation, clock bool) ([]store.Change, error) {
	first, err := Revoking(n, e)
	changes := []store.Change{first}
	if !clock {
		return changes, err
	}
	for _, o := range r.store.List(revokedKind) {
		old, err := pki.DecodeRevocation(o.Doc)
		if err == nil && old.Over(e.At) && o.Name != first.Name && len(changes) <= mostRevokedPruned {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	if o, ok := r.store.Get(revocationsKey()); ok {
		if list, err := pki.DecodeRevocations(o.Doc); err == nil && list.Over(e.At) {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	return changes, err
}

// take takes in a batch of the store, and cuts off whose certificates count no more.
func (r *revocations) take(b store.Batch) {
	if b.Reset {
		if err := r.read(); err != nil {
			r.log.Error("what was known to be revoked stays", "err", err)
		}
		return
	}
	for _, e := range b.Events {
		n := 0
		switch {
		case e.Kind == revocationsKind && e.Object != nil:
			list, err := pki.DecodeRevocations(e.Object.Doc)
			if err != nil {
				r.log.Error("the list before stays", "err", err)
				continue
			}
			n = r.gate.Set(list)
		case e.Kind == revokedKind && e.Object == nil:
			r.gate.SetName(e.Name, nil)
		case e.Kind == revokedKind:
			n = r.gate.SetName(e.Name, r.in(e.Object))
		case e.Kind == store.KindHost && e.Object != nil:
			n = r.holds(*e.Object)
		case e.Kind == store.KindHost && e.Before != nil:
			r.gate.DropHost(e.Before.ID)
		}
		if n > 0 {
			r.log.Info("connections were ended, as their certificates count no more", "connections", n)
		}
	}
}

// in is what an object says. One that can't be read revokes all the same.
func (r *revocations) in(o *store.Object) *pki.Revocation {
	e, err := pki.DecodeRevocation(o.Doc)
	if err != nil {
		r.log.Error("a revocation counts without its reason", "of", o.Name, "err", err)
		return &pki.Revocation{By: "somebody", Why: "the reason can't be read"}
	}
	return e
}

// holds makes the certificates in a host's record those that count, and returns how many connections were ended.
func (r *revocations) holds(o store.Object) int {
	var doc hostDoc
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		return 0 // who reads the host says so
	}
	return r.gate.SetHost(o.ID, doc.holding(o.Version))
}

// read reads what is revoked before anybody is let in.
func (r *revocations) read() error {
	o, _ := r.store.Get(revocationsKey())
	list, err := pki.DecodeRevocations(o.Doc)
	if err != nil {
		return fmt.Errorf("a controller lets nobody in that does not know what is revoked: %w", err)
	}
	names := map[string]pki.Revocation{}
	for _, o := range r.store.List(revokedKind) {
		names[o.Name] = *r.in(&o)
	}
	hosts := map[string]pki.Holding{}
	for _, o := range r.store.List(store.KindHost) {
		var doc hostDoc
		if json.Unmarshal(o.Doc, &doc) == nil {
			hosts[o.ID] = doc.holding(o.Version)
		}
	}
	if n := r.gate.Set(list) + r.gate.SetNames(names) + r.gate.SetHosts(hosts); n > 0 {
		r.log.Info("connections were ended, as their certificates count no more", "connections", n)
	}
	return nil
}
