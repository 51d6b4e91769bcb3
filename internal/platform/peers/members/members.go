package members

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// memberTime bounds a change of etcd's members: etcd makes none before the members have seen each other for some
// seconds.
const memberTime = 20 * time.Second

// tokenLife is how long a token can be used where nobody says.
const tokenLife = time.Hour

// Store is what a service needs of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
}

// Etcd are the members of etcd.
type Etcd interface {
	Status(context.Context) (store.Status, error)
	AddMember(ctx context.Context, name string, urls []string) (id uint64, members []string, err error)
	RemoveMember(ctx context.Context, id uint64) error
	Snapshot(ctx context.Context, to io.Writer) (size int64, err error)
}

// Service answers people and controllers.
type Service struct {
	Store     Store
	Etcd      Etcd
	Log       *slog.Logger
	Authority *pki.Current
	Roster    *peers.Roster
	Guard     *access.Guard
	Now       func() time.Time
	Epoch     int64 // of the data
	// Secret opens the authority's key: a controller that joins gets it.
	Secret pki.Secret
	// Caller is the controller that calls, From the address of who does.
	Caller func(context.Context) (*identity.Peer, error)
	From   func(context.Context) string
	// Standing is how this controller stands.
	Standing func(context.Context) *controllerv1.GetControllerResponse
	// ValidName reports whether something may be called so, Objects are how many the definition has.
	ValidName func(string) bool
	Objects   func() int
	// KeepToken writes the record of a new token, Redeem says what becomes of a record when the token is used.
	KeepToken func(ctx context.Context, id identity.TokenID, record any) error
	Redeem    func(identity.JoinToken, pki.JoinRequest, string, time.Time) (*pki.JoinRecord, *store.Change, error)
	// Revoking are the changes by which a name is revoked; ClockFits: there is no sign that this controller's clock is
	// wrong.
	Revoking  func(n identity.Name, e pki.Revocation, clock bool) ([]store.Change, error)
	ClockFits func(context.Context) bool
	// Join makes this controller part of another cluster. May be nil.
	Join func(context.Context, *controllerv1.JoinClusterRequest) (*controllerv1.JoinClusterResponse, error)
}

// Apart says why a controller that answers as one of the cluster is none: its store is another one; "" where it is the
// same, or where one of the two does not say.
func Apart(own, theirs *controllerv1.GetControllerResponse) string {
	const what = "it has a store of its own, and not the cluster's: what is changed there is in nobody's definition, " +
		"and its vote is missing here. Take it out (heddle-controller remove), empty its data directory, and let it " +
		"join again"
	other := func(a, b string) bool { return a != "" && b != "" && a != b }
	if other(own.GetStore(), theirs.GetStore()) || other(own.GetEtcdCluster(), theirs.GetEtcdCluster()) {
		return what
	}
	return ""
}

// CreateControllerToken makes a token by which one controller may join.
func (s Service) CreateControllerToken(ctx context.Context, q *controllerv1.CreateControllerTokenRequest) (
	*controllerv1.CreateControllerTokenResponse, error) {
	if st, err := s.Etcd.Status(ctx); err == nil && st.Embedded && s.Roster.This.Peer == "" {
		return nil, connect.NewError(connect.CodeFailedPrecondition, "this controller was started with --listen-peers "+
			"none, so that no other can join: start it without")
	}
	terms := pki.JoinTerms{Life: tokenLife, By: access.NameOf(ctx)}
	if q.GetLasts() != nil {
		terms.Life = q.GetLasts().AsDuration()
	}
	token, record, err := s.Authority.NewControllerToken(terms, s.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	if err := s.KeepToken(ctx, token.ID, record); err != nil {
		return nil, err
	}
	s.Log.Info("a token for a controller was made", "token", token.String(), "expires", record.Expires)
	return &controllerv1.CreateControllerTokenResponse{Token: token.Text(), Expires: timestamppb.New(record.Expires)},
		nil
}

// JoinController makes the caller a controller of the cluster. The token is used in the transaction that writes the
// controller.
func (s Service) JoinController(ctx context.Context, q *controllerv1.JoinControllerRequest) (
	*controllerv1.JoinControllerResponse, error) {
	token, err := identity.ParseControllerToken(q.GetToken())
	if err != nil {
		return nil, connect.NewError(connect.CodeUnauthenticated, err.Error())
	}
	if !s.ValidName(q.GetName()) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("%q is no name for a controller",
			q.GetName()))
	}
	if _, _, err := net.SplitHostPort(q.GetAddress()); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("%q is no address of a controller: give "+
			"HOST:PORT", q.GetAddress()))
	}
	key, err := pki.KeyOf(q.GetCsr())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	if err := s.Roster.Current(ctx); err != nil {
		return nil, err
	}
	used, change, err := s.Redeem(token, pki.JoinRequest{Token: token, Key: key}, q.GetName(), s.Now())
	if err != nil {
		s.Guard.NotJoined(access.Joiner{From: s.From(ctx), Token: token.ID, Call: "JoinController",
			Name: q.GetName()}, err)
		return nil, connect.NewError(connect.CodeUnauthenticated, err.Error())
	}
	id, err := seat(s.Roster, q.GetName(), used, change == nil)
	if err != nil {
		return nil, err
	}
	if change != nil {
		doc, err := json.Marshal(peers.Controller{Name: q.GetName(), Address: q.GetAddress(), Joined: used.Used.At})
		if err != nil {
			return nil, err
		}
		done, err := s.Guard.Join(ctx, access.Joiner{From: s.From(ctx), Token: token.ID, Call: "JoinController",
			Name: q.GetName()})
		if err != nil {
			return nil, err
		}
		_, err = s.Store.Write(ctx, []store.Change{*change, {Key: store.Key{Kind: peers.ControllerKind, Name: id},
			Doc: doc, IfVersion: store.New}})
		if done(err); err != nil {
			return nil, rpcerrors.OfStore(err)
		}
		s.Log.Info("a controller joined", "controller", q.GetName(), "id", id, "address", s.From(ctx), "token",
			token.String())
	}
	return s.admitted(ctx, id)
}

// seat is the id of a controller that joins: again says that it has one.
func seat(r *peers.Roster, name string, used *pki.JoinRecord, again bool) (string, error) {
	for _, c := range r.Cluster() {
		if peers.NameOf(c) != name {
			continue
		}
		if again && c.Joined.Equal(used.Used.At) {
			return c.ID, nil
		}
		return "", connect.NewError(connect.CodeAlreadyExists, fmt.Sprintf("the cluster has a controller %s: take "+
			"another name (--name), or take the old one out first (heddle-controller remove %s)", name, name))
	}
	if again {
		return "", connect.NewError(connect.CodeUnauthenticated, (&identity.TokenError{Fault: identity.Used,
			ID: used.ID}).Error())
	}
	return store.NewID(), nil
}

// admitted is what a controller gets that was let in.
func (s Service) admitted(ctx context.Context, id string) (*controllerv1.JoinControllerResponse, error) {
	authority, err := s.Authority.Get().Document.Encode()
	if err != nil {
		return nil, err
	}
	st, err := s.Etcd.Status(ctx)
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	return &controllerv1.JoinControllerResponse{Controller: id, Authority: authority, Secret: s.Secret.Content(),
		Controllers: s.Roster.Controllers(), Embedded: st.Embedded}, nil
}

// AddMember makes the controller that calls a member of etcd, without a vote at first.
func (s Service) AddMember(ctx context.Context, q *controllerv1.AddMemberRequest) (*controllerv1.AddMemberResponse,
	error) {
	peer, err := s.Caller(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := s.Store.Get(store.Key{Kind: peers.ControllerKind, Name: peer.Name.ID}); !ok {
		return nil, connect.NewError(connect.CodePermissionDenied, "this controller was taken out of the cluster")
	}
	ctx, cancel := context.WithTimeout(ctx, memberTime)
	defer cancel()
	_, members, err := s.Etcd.AddMember(ctx, peer.Name.ID, q.GetUrls())
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err.Error())
	}
	s.Log.Info("a controller becomes a member of etcd", "id", peer.Name.ID, "urls", q.GetUrls())
	return &controllerv1.AddMemberResponse{Members: members}, nil
}

// RemoveController takes a controller out of the cluster: its certificates count no more, and it has no vote.
func (s Service) RemoveController(ctx context.Context, q *controllerv1.RemoveControllerRequest) (
	*controllerv1.RemoveControllerResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTime)
	defer cancel()
	if err := s.Roster.Current(ctx); err != nil {
		return nil, err
	}
	members, err := s.Etcd.Status(ctx)
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	id, known := q.GetName(), false
	for _, c := range s.Roster.Cluster() {
		if c.ID == q.GetName() || peers.NameOf(c) == q.GetName() {
			id, known = c.ID, true
		}
	}
	var member uint64
	for _, m := range members.Members {
		if m.Name == id {
			member = m.ID
		}
	}
	switch {
	case !known && member == 0:
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("the cluster has no controller %q: see "+
			"heddle-controller list", q.GetName()))
	case id == s.Roster.This.ID:
		return nil, connect.NewError(connect.CodeFailedPrecondition, "a controller does not take itself out: run this "+
			"at another one")
	}
	if err := s.forget(ctx, id, q.GetName()); err != nil {
		return nil, err
	}
	if member != 0 {
		if err := s.Etcd.RemoveMember(ctx, member); err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("the controller's certificates count no "+
				"more, but it has still a vote in etcd (repeat this): %v", err))
		}
	}
	s.Log.Info("a controller was taken out of the cluster", "controller", q.GetName(), "id", id)
	after, _ := s.Etcd.Status(ctx) // notes are no reason to fail
	return &controllerv1.RemoveControllerResponse{Notes: notesOf(after)}, nil
}

// forget revokes a controller's certificates and removes its object.
func (s Service) forget(ctx context.Context, id, name string) error {
	full := identity.Name{Cluster: s.Authority.Trust().Cluster, Kind: identity.Controller, ID: id}
	changes, err := s.Revoking(full, pki.Revocation{At: s.Now(), By: "the controller's socket",
		Why: "controller " + name + " was taken out of the cluster"}, s.ClockFits(ctx))
	if err != nil {
		return err
	}
	if o, ok := s.Store.Get(store.Key{Kind: peers.ControllerKind, Name: id}); ok {
		changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
	}
	_, err = s.Store.Write(ctx, changes)
	return rpcerrors.OfStore(err)
}

// JoinCluster makes this controller part of another cluster, if there is nothing that would be lost by it.
func (s Service) JoinCluster(ctx context.Context, q *controllerv1.JoinClusterRequest) (
	*controllerv1.JoinClusterResponse, error) {
	if s.Join == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, "this controller can't join another cluster")
	}
	objects := s.Objects()
	if hosts := len(s.Store.List(store.KindHost)); hosts > 0 || objects > 0 || len(s.Roster.Others()) > 0 {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("this controller has a cluster of "+
			"its own, with %d hosts, %d objects and %d other controllers: stop it and move its data directory away, "+
			"if nobody needs that", hosts, objects, len(s.Roster.Others())))
	}
	if q.GetName() == "" {
		q.Name = s.Roster.This.Name
	}
	return s.Join(ctx, q)
}
