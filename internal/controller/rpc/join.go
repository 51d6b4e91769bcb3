package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/health"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/spec"
)

// JoinHost makes the caller a host of the cluster. The token is used in the transaction that writes the host.
func (s *Server) JoinHost(ctx context.Context, q *controllerv1.JoinHostRequest) (*controllerv1.JoinHostResponse,
	error) {
	token, err := identity.ParseJoinToken(q.GetToken())
	if err != nil {
		return nil, connect.NewError(connect.CodeUnauthenticated, err.Error())
	}
	if !spec.ValidName(q.GetName()) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("%q is no name for a host", q.GetName()))
	}
	key, err := pki.KeyOf(q.GetCsr())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	if err := s.Current(ctx); err != nil { // the token may have been made, or used, at another controller just now
		return nil, err
	}
	// By a clock that is wrong the token seems to have expired.
	if err := s.issuing.May(ctx, health.Clocks.Against); err != nil {
		return nil, err
	}
	joiner := access.Joiner{From: addressOf(ctx), Token: token.ID, Call: "JoinHost", Name: q.GetName()}
	now := s.TLS.Now()
	used, change, err := s.redeem(token, pki.JoinRequest{Token: token, Key: key, Replace: q.GetReplace()}, q.GetName(),
		now)
	if err != nil {
		s.guard.NotJoined(joiner, err)
		return nil, connect.NewError(connect.CodeUnauthenticated, err.Error())
	}
	place, err := placeOf(s.Store, q.GetName(), used, change == nil)
	if err != nil {
		s.guard.NotJoined(joiner, err)
		return nil, err
	}
	host, doc, issued, err := place.take(s.Authority.Get(), q, used, now)
	if err != nil {
		return nil, err
	}
	changes := []store.Change{host}
	if change != nil { // an admin made this token for it since; who asks again confirms nothing
		confirmed, err := oldListOf(s).confirming(pki.RevokedAs(identity.Name{Kind: identity.Host, ID: host.ID}))
		if err != nil {
			return nil, err
		}
		changes = append(append(changes, *change), confirmed...)
	}
	done, err := s.guard.Join(ctx, joiner)
	if err != nil {
		return nil, err
	}
	var version int64
	err = granter{s}.onBook(ctx, func() error {
		addresses, err := granter{s}.joining(ctx, q.GetName(), labelsOf(used.Labels))
		if err == nil {
			version, err = s.Store.Write(ctx, slices.Concat(changes, addresses))
		}
		return err
	})
	if done(err); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	s.gate.SetHost(host.ID, doc.holding(version)) // before the host comes with it
	s.Log.Info("a host joined", "host", q.GetName(), "address", addressOf(ctx), "token", token.String())
	return &controllerv1.JoinHostResponse{Identity: s.identity(host.ID, q.GetName(), issued)}, nil
}

// redeem checks a token, and says what becomes of its record; nil where the same host asks again.
func (s *Server) redeem(token identity.JoinToken, q pki.JoinRequest, name string, now time.Time) (*pki.JoinRecord,
	*store.Change, error) {
	key := store.Key{Kind: store.KindToken, Name: string(token.ID)}
	var record *pki.JoinRecord
	o, ok := s.Store.Get(key)
	if ok {
		record = &pki.JoinRecord{}
		if err := json.Unmarshal(o.Doc, record); err != nil {
			return nil, nil, fmt.Errorf("the token's record is damaged: %w", err)
		}
	}
	used, err := s.Authority.Redeem(record, q, name, now)
	if err != nil {
		return nil, nil, err
	}
	if used == record {
		return used, nil, nil
	}
	doc, err := json.Marshal(used)
	if err != nil {
		return nil, nil, err
	}
	return used, &store.Change{Key: key, Doc: doc, IfVersion: o.Version}, nil
}

// labelsOf are the labels that a host has by its token: those that have one value there.
func labelsOf(b pki.LabelBounds) map[string]string {
	labels := map[string]string{}
	for k, values := range b {
		if len(values) == 1 {
			labels[k] = values[0]
		}
	}
	return labels
}

// hostOf finds a host of the store by its id.
func (s *Server) hostOf(id string) (store.Object, hostDoc, bool) {
	var doc hostDoc
	for _, o := range s.Store.List(store.KindHost) {
		if o.ID == id && json.Unmarshal(o.Doc, &doc) == nil {
			return o, doc, true
		}
	}
	return store.Object{}, doc, false
}

func (s *Server) identity(id, name string, issued *pki.Issued) *controllerv1.HostIdentity {
	out := &controllerv1.HostIdentity{Cluster: string(s.Authority.Trust().Cluster), Host: id, Name: name,
		Certificates: [][]byte{issued.Certificate.Raw}, Controllers: s.Controllers()}
	for _, r := range issued.Roots {
		out.Roots = append(out.Roots, r.Raw)
	}
	return out
}
