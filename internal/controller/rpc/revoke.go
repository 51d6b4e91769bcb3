package rpc

import (
	"fmt"

	"heddle/internal/controller/pki"
	"heddle/internal/controller/store"
)

// revocationsKind is the kind of the one object with the list of what is revoked.
const revocationsKind store.Kind = "revocations"

// RevocationsKey is the key of that object.
func RevocationsKey() store.Key { return store.Key{Kind: revocationsKind, Name: "current"} }

// revoking is the change that makes the list another one. It is written with what it belongs to.
func (s *Server) revoking(change func(*pki.Revocations) *pki.Revocations) (store.Change, error) {
	o, _ := s.Store.Get(RevocationsKey())
	list, err := pki.DecodeRevocations(o.Doc)
	if err != nil {
		return store.Change{}, err
	}
	text, err := change(list.Prune(s.TLS.Now())).Encode()
	return store.Change{Key: RevocationsKey(), Doc: text, IfVersion: o.Version, Vital: true}, err
}

// revokeAll is the list with these certificates.
func revokeAll(r *pki.Revocations, certs []formerCert, e pki.Revocation) *pki.Revocations {
	for _, c := range certs {
		e.Until = pki.UntilOf(c.Expires)
		r = r.RevokeCertificate(c.Serial, e)
	}
	return r
}

// revoked makes the list in the store the one that counts, and cuts off who stands on it.
func (s *Server) revoked(doc []byte) error {
	list, err := pki.DecodeRevocations(doc)
	if err != nil {
		return err
	}
	if n := s.gate.Set(list); n > 0 {
		s.Log.Info("connections were ended, as their certificates are revoked", "connections", n)
	}
	return nil
}

// takeRevocations takes in a batch of the store.
func (s *Server) takeRevocations(b store.Batch) {
	for _, e := range b.Events {
		if e.Kind != revocationsKind || e.Object == nil {
			continue
		}
		if err := s.revoked(e.Object.Doc); err != nil {
			s.Log.Error("the list before stays", "err", err)
		}
	}
}

// readRevocations reads the list before anybody is let in.
func (s *Server) readRevocations() error {
	o, _ := s.Store.Get(RevocationsKey())
	if err := s.revoked(o.Doc); err != nil {
		return fmt.Errorf("a controller lets nobody in that does not know what is revoked: %w", err)
	}
	return nil
}
