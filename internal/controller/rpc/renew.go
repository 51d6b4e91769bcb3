package rpc

import (
	"bytes"
	"context"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

const (
	// askAgain is how long after a host was told that its certificate is due it is told again.
	askAgain = time.Hour
	// renewTime is how long a connection stays that is good for nothing but renewing a certificate.
	renewTime = time.Minute
)

// RenewHost gives a host its next certificate.
func (s *Server) RenewHost(ctx context.Context, q *controllerv1.RenewHostRequest) (*controllerv1.RenewHostResponse,
	error) {
	peer, err := peerOf(ctx)
	if err != nil {
		return nil, err
	}
	o, doc, ok := s.hostOf(peer.Name.ID)
	if !ok {
		return nil, rpcerrors.Removed()
	}
	now := s.TLS.Now()
	if err := s.issuing.MayRenew(ctx, peer, q.GetNow()); err != nil {
		return nil, err
	}
	if err := doc.mayRenew(s.Authority.Get(), now); err != nil {
		s.refused.Note(addressOf(ctx), &identity.PeerError{Fault: identity.TooOften, Name: peer.Name, Err: err})
		return nil, err
	}
	issued, err := s.Authority.Renew(peer, q.GetCsr(), pki.Subject{ID: o.ID, Display: doc.Name}, now)
	if err != nil {
		return nil, connect.NewError(connect.CodePermissionDenied, err.Error())
	}
	doc = doc.next(issued, now)
	text, err := rewritten(o, doc)
	if err != nil {
		return nil, err
	}
	version, err := s.Store.Write(ctx, []store.Change{{Key: o.Key, Doc: text, IfVersion: o.Version}})
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	s.gate.SetHost(o.ID, doc.holding(version)) // before the host comes with it
	s.Log.Info("a host renewed its certificate", "host", doc.Name, "address", addressOf(ctx), "expires", doc.Expires)
	return &controllerv1.RenewHostResponse{Identity: s.identity(o.ID, doc.Name, issued)}, nil
}

// renewal says when a host is told that its certificate is due.
type renewal struct {
	*Server
	peer *identity.Peer
	told time.Time
	// step is the last one of a rotation that asks for a renewal, seen when it was seen first, asked whether the host
	// was told since.
	step  time.Time
	seen  time.Time
	asked bool
}

// due is what a host is to be told now: nil for nothing.
func (r *renewal) due() *controllerv1.RenewCertificate {
	now, a := r.TLS.Now(), r.Authority.Get()
	if changed := a.Document.Changed; !changed.Equal(r.step) {
		r.step, r.seen, r.asked = changed, now, false
	}
	again := now.Sub(r.told) >= askAgain
	switch {
	case !now.Before(identity.RenewAt(r.peer.Certificate)) && again:
	case r.stepped(a) && (again || !r.asked) && now.Sub(r.seen) >= r.spread():
		r.asked = true
	default:
		return nil
	}
	r.told = now
	return &controllerv1.RenewCertificate{SameKey: r.peer.RenewOnly}
}

// wait is how long it takes at least until something is due.
func (r *renewal) wait() time.Duration {
	now := r.TLS.Now()
	wait := min(askAgain, max(time.Second, identity.RenewAt(r.peer.Certificate).Sub(now)))
	if !r.asked && r.stepped(r.Authority.Get()) {
		wait = min(wait, max(time.Millisecond, r.spread()-now.Sub(r.seen)))
	}
	return wait
}

// issuerOf is the root that signed the certificate of a host; of none that counts it is zero.
func issuerOf(p *identity.Peer, trust identity.Trust) (root identity.Fingerprint) {
	for _, r := range trust.Roots {
		if bytes.Equal(r.SubjectKeyId, p.Certificate.AuthorityKeyId) {
			return identity.FingerprintOf(r)
		}
	}
	return root
}

// renewOnly tells a host whose certificate does not count now to renew it, and nothing else.
func (s *Server) renewOnly(ctx context.Context, e entry,
	stream controllerv1connect.HostServiceFollowSliceServerStream) error {
	if _, _, ok := s.hostOf(e.peer.Name.ID); !ok {
		return rpcerrors.Removed()
	}
	first, err := hear(ctx, s, e, stream, func() error { return nil })
	if err == nil { // a host that can't renew it here goes to another controller
		err = s.issuing.MayRenew(ctx, e.peer, first.GetHello().GetNow())
	}
	if err != nil {
		return err
	}
	if err := stream.Send(&controllerv1.FollowSliceResponse{
		Renew: &controllerv1.RenewCertificate{SameKey: true}}); err != nil {
		return err
	}
	select {
	case <-time.After(renewTime):
		return connect.NewError(connect.CodeUnauthenticated,
			"the certificate of this host does not count now, and the host did not renew it")
	case <-ctx.Done():
		return ended(ctx)
	}
}
