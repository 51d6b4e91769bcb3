package rpc

import (
	"encoding/json"
	"fmt"

	"heddle/internal/controller/pki"
	"heddle/internal/controller/store"
	"heddle/internal/identity"
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

// Revoking is the change that revokes a host or a controller with all its certificates. It is written with what it
// belongs to.
func Revoking(n identity.Name, e pki.Revocation) (store.Change, error) {
	text, err := json.Marshal(e)
	return store.Change{Key: store.Key{Kind: revokedKind, Name: pki.RevokedAs(n)}, Doc: text, IfVersion: store.Any}, err
}

// revoking is Revoking, with the removal of some of those that nobody needs any more.
func (s *Server) revoking(n identity.Name, e pki.Revocation) ([]store.Change, error) {
	first, err := Revoking(n, e)
	changes := []store.Change{first}
	for _, o := range s.Store.List(revokedKind) {
		old, err := pki.DecodeRevocation(o.Doc)
		if err == nil && old.Over(e.At) && o.Name != first.Name && len(changes) <= mostRevokedPruned {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	if o, ok := s.Store.Get(revocationsKey()); ok {
		if list, err := pki.DecodeRevocations(o.Doc); err == nil && list.Over(e.At) {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	return changes, err
}

// takeRevocations takes in a batch of the store, and cuts off whose certificates count no more.
func (s *Server) takeRevocations(b store.Batch) {
	if b.Reset {
		if err := s.readRevocations(); err != nil {
			s.Log.Error("what was known to be revoked stays", "err", err)
		}
		return
	}
	for _, e := range b.Events {
		n := 0
		switch {
		case e.Kind == revocationsKind && e.Object != nil:
			list, err := pki.DecodeRevocations(e.Object.Doc)
			if err != nil {
				s.Log.Error("the list before stays", "err", err)
				continue
			}
			n = s.gate.Set(list)
		case e.Kind == revokedKind && e.Object == nil:
			s.gate.SetName(e.Name, nil)
		case e.Kind == revokedKind:
			n = s.gate.SetName(e.Name, s.revocationIn(e.Object))
		case e.Kind == store.KindHost && e.Object != nil:
			n = s.holds(*e.Object)
		}
		if n > 0 {
			s.Log.Info("connections were ended, as their certificates count no more", "connections", n)
		}
	}
}

// revocationIn is what an object says. One that can't be read revokes all the same.
func (s *Server) revocationIn(o *store.Object) *pki.Revocation {
	e, err := pki.DecodeRevocation(o.Doc)
	if err != nil {
		s.Log.Error("a revocation counts without its reason", "of", o.Name, "err", err)
		return &pki.Revocation{By: "somebody", Why: "the reason can't be read"}
	}
	return e
}

// holds makes the certificates in a host's record those that count, and returns how many connections were ended.
func (s *Server) holds(o store.Object) int {
	var doc hostDoc
	if err := json.Unmarshal(o.Doc, &doc); err != nil {
		return 0 // who reads the host says so
	}
	return s.gate.SetHost(o.ID, doc.holding())
}

// readRevocations reads what is revoked before anybody is let in.
func (s *Server) readRevocations() error {
	o, _ := s.Store.Get(revocationsKey())
	list, err := pki.DecodeRevocations(o.Doc)
	if err != nil {
		return fmt.Errorf("a controller lets nobody in that does not know what is revoked: %w", err)
	}
	names := map[string]pki.Revocation{}
	for _, o := range s.Store.List(revokedKind) {
		names[o.Name] = *s.revocationIn(&o)
	}
	hosts := map[string]pki.Holding{}
	for _, o := range s.Store.List(store.KindHost) {
		var doc hostDoc
		if json.Unmarshal(o.Doc, &doc) == nil {
			hosts[o.ID] = doc.holding()
		}
	}
	if n := s.gate.Set(list) + s.gate.SetNames(names) + s.gate.SetHosts(hosts); n > 0 {
		s.Log.Info("connections were ended, as their certificates count no more", "connections", n)
	}
	return nil
}
