package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/controller/definition"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/health"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/spec"
)

// memberTime bounds a change of etcd's members: etcd makes none before the members have seen each other for some
// seconds.
const memberTime = 20 * time.Second

// CreateControllerToken makes a token by which one controller may join.
func (p people) CreateControllerToken(ctx context.Context, q *controllerv1.CreateControllerTokenRequest) (
	*controllerv1.CreateControllerTokenResponse, error) {
	if st, err := p.Members.Status(ctx); err == nil && st.Embedded && p.This.Peer == "" {
		return nil, connect.NewError(connect.CodeFailedPrecondition, "this controller was started with --listen-peers "+
			"none, so that no other can join: start it without")
	}
	terms := pki.JoinTerms{Life: defaultLife, By: access.NameOf(ctx)}
	if q.GetLasts() != nil {
		terms.Life = q.GetLasts().AsDuration()
	}
	token, record, err := p.Authority.NewControllerToken(terms, p.TLS.Now())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	if err := p.keepToken(ctx, token.ID, record); err != nil {
		return nil, err
	}
	p.Log.Info("a token for a controller was made", "token", token.String(), "expires", record.Expires)
	return &controllerv1.CreateControllerTokenResponse{Token: token.Text(), Expires: timestamppb.New(record.Expires)},
		nil
}

// JoinController makes the caller a controller of the cluster. The token is used in the transaction that writes the
// controller.
func (s *Server) JoinController(ctx context.Context, q *controllerv1.JoinControllerRequest) (
	*controllerv1.JoinControllerResponse, error) {
	token, err := identity.ParseControllerToken(q.GetToken())
	if err != nil {
		return nil, connect.NewError(connect.CodeUnauthenticated, err.Error())
	}
	if !spec.ValidName(q.GetName()) {
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
	if err := s.Current(ctx); err != nil {
		return nil, err
	}
	used, change, err := s.redeem(token, pki.JoinRequest{Token: token, Key: key}, q.GetName(), s.TLS.Now())
	if err != nil {
		s.guard.NotJoined(access.Joiner{From: addressOf(ctx), Token: token.ID, Call: "JoinController",
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
		done, err := s.guard.Join(ctx, access.Joiner{From: addressOf(ctx), Token: token.ID, Call: "JoinController",
			Name: q.GetName()})
		if err != nil {
			return nil, err
		}
		_, err = s.Store.Write(ctx, []store.Change{*change, {Key: store.Key{Kind: peers.ControllerKind, Name: id},
			Doc: doc, IfVersion: store.New}})
		if done(err); err != nil {
			return nil, rpcerrors.OfStore(err)
		}
		s.Log.Info("a controller joined", "controller", q.GetName(), "id", id, "address", addressOf(ctx), "token",
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
func (s *Server) admitted(ctx context.Context, id string) (*controllerv1.JoinControllerResponse, error) {
	authority, err := s.Authority.Get().Document.Encode()
	if err != nil {
		return nil, err
	}
	st, err := s.Members.Status(ctx)
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	return &controllerv1.JoinControllerResponse{Controller: id, Authority: authority, Secret: s.Secret.Content(),
		Controllers: s.Controllers(), Embedded: st.Embedded}, nil
}

// AddMember makes the controller that calls a member of etcd, without a vote at first.
func (s *Server) AddMember(ctx context.Context, q *controllerv1.AddMemberRequest) (*controllerv1.AddMemberResponse,
	error) {
	peer, err := controllerOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, ok := s.Store.Get(store.Key{Kind: peers.ControllerKind, Name: peer.Name.ID}); !ok {
		return nil, connect.NewError(connect.CodePermissionDenied, "this controller was taken out of the cluster")
	}
	ctx, cancel := context.WithTimeout(ctx, memberTime)
	defer cancel()
	_, members, err := s.Members.AddMember(ctx, peer.Name.ID, q.GetUrls())
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err.Error())
	}
	s.Log.Info("a controller becomes a member of etcd", "id", peer.Name.ID, "urls", q.GetUrls())
	return &controllerv1.AddMemberResponse{Members: members}, nil
}

// ListControllers lists the controllers and how they stand.
func (p people) ListControllers(ctx context.Context, _ *controllerv1.ListControllersRequest) (
	*controllerv1.ListControllersResponse, error) {
	members, err := p.Members.Status(ctx)
	stale := p.Confirmed(ctx)
	if err != nil && stale == "" {
		return nil, rpcerrors.OfStore(err)
	}
	said := map[string]peers.Answer[*controllerv1.GetControllerResponse]{p.This.ID: {Got: p.standing(ctx, false)}}
	for _, a := range peers.AskOthers(ctx, p.Roster, peers.AskTime, func(ctx context.Context, k *peers.Link) (
		*controllerv1.GetControllerResponse, error) {
		return k.GetController(ctx, &controllerv1.GetControllerRequest{})
	}) {
		said[a.Of.ID] = a
	}
	out := &controllerv1.ListControllersResponse{Cluster: string(p.Authority.Trust().Cluster), Epoch: p.Epoch,
		Notes: notesOf(members)}
	if stale != "" {
		out.Notes = append(out.Notes, stale)
	}
	for _, c := range p.Cluster() {
		row := shownController(c, said[c.ID], p.Self)
		row.Self, row.Role = c.ID == p.This.ID, roleOf(c.ID, members)
		out.Controllers = append(out.Controllers, row)
	}
	return out, nil
}

func shownController(c peers.Controller, said peers.Answer[*controllerv1.GetControllerResponse],
	mine Self) *controllerv1.Controller {
	out := &controllerv1.Controller{Name: peers.NameOf(c), Id: c.ID, Address: c.Address, Peer: c.Peer,
		Version: c.Version,
		State:   "up", Hosts: said.Got.GetHosts(), Lag: said.Got.GetLag()}
	switch {
	case said.Err != nil:
		out.State, out.Problem = "unreachable", said.Err.Error()
		var by *connect.Error
		if errors.As(said.Err, &by) {
			out.Problem = by.Message()
		}
	case apart(mine, said.Got) != "":
		out.State, out.Problem = "apart", apart(mine, said.Got)
	case said.Got.GetStale() != "":
		out.State, out.Problem = "stale", said.Got.GetStale()
	case said.Got.GetNoRoom() != "":
		out.Problem = said.Got.GetNoRoom()
	}
	return out
}

// roleOf is what a controller is in etcd.
func roleOf(id string, st store.Status) string {
	if !st.Embedded {
		return "none"
	}
	for _, m := range st.Members {
		switch {
		case m.Name != id:
		case m.Learner:
			return "learner"
		case m.Leader:
			return "leader"
		default:
			return "voter"
		}
	}
	return "none"
}

// notesOf says what is to be known of the members as a whole.
func notesOf(st store.Status) (notes []string) {
	voters := 0
	for _, m := range st.Members {
		if !m.Learner {
			voters++
		}
	}
	if st.Embedded && voters > 0 && voters%2 == 0 {
		notes = append(notes, evenText(voters))
	}
	return notes
}

// evenText warns about an even number of controllers.
func evenText(n int) string {
	return fmt.Sprintf("%d controllers stand the loss of %d, as %d do: add one, or take one out", n, (n-1)/2, n-1)
}

// RemoveController takes a controller out of the cluster: its certificates count no more, and it has no vote.
func (p people) RemoveController(ctx context.Context, q *controllerv1.RemoveControllerRequest) (
	*controllerv1.RemoveControllerResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, memberTime)
	defer cancel()
	if err := p.Current(ctx); err != nil {
		return nil, err
	}
	members, err := p.Members.Status(ctx)
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	id, known := q.GetName(), false
	for _, c := range p.Cluster() {
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
	case id == p.This.ID:
		return nil, connect.NewError(connect.CodeFailedPrecondition, "a controller does not take itself out: run this "+
			"at another one")
	}
	if err := p.forget(ctx, id, q.GetName()); err != nil {
		return nil, err
	}
	if member != 0 {
		if err := p.Members.RemoveMember(ctx, member); err != nil {
			return nil, connect.NewError(connect.CodeUnavailable, fmt.Sprintf("the controller's certificates count no "+
				"more, but it has still a vote in etcd (repeat this): %v", err))
		}
	}
	p.Log.Info("a controller was taken out of the cluster", "controller", q.GetName(), "id", id)
	after, _ := p.Members.Status(ctx) // notes are no reason to fail
	return &controllerv1.RemoveControllerResponse{Notes: notesOf(after)}, nil
}

// forget revokes a controller's certificates and removes its object.
func (p people) forget(ctx context.Context, id, name string) error {
	full := identity.Name{Cluster: p.Authority.Trust().Cluster, Kind: identity.Controller, ID: id}
	changes, err := oldListOf(p.Server).revoking(full, pki.Revocation{At: p.TLS.Now(), By: "the controller's socket",
		Why: "controller " + name + " was taken out of the cluster"}, issuing(p).may(ctx, health.Clocks.Doubted) == nil)
	if err != nil {
		return err
	}
	if o, ok := p.Store.Get(store.Key{Kind: peers.ControllerKind, Name: id}); ok {
		changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
	}
	_, err = p.Store.Write(ctx, changes)
	return rpcerrors.OfStore(err)
}

// JoinCluster makes this controller part of another cluster, if there is nothing that would be lost by it.
func (p people) JoinCluster(ctx context.Context, q *controllerv1.JoinClusterRequest) (
	*controllerv1.JoinClusterResponse, error) {
	if p.Options.JoinCluster == nil {
		return nil, connect.NewError(connect.CodeUnimplemented, "this controller can't join another cluster")
	}
	set, _ := definition.Stored(p.Store)
	if hosts := len(p.Store.List(store.KindHost)); hosts > 0 || set.Len() > 0 || len(p.Others()) > 0 {
		return nil, connect.NewError(connect.CodeFailedPrecondition, fmt.Sprintf("this controller has a cluster of "+
			"its own, with %d hosts, %d objects and %d other controllers: stop it and move its data directory away, "+
			"if nobody needs that", hosts, set.Len(), len(p.Others())))
	}
	if q.GetName() == "" {
		q.Name = p.This.Name
	}
	return p.Options.JoinCluster(ctx, q)
}

// partSize is how much of a snapshot is sent at a time, in bytes.
const partSize = 1 << 20

// TakeSnapshot sends the whole database.
func (p people) TakeSnapshot(ctx context.Context, _ *controllerv1.TakeSnapshotRequest,
	stream controllerv1connect.MemberServiceTakeSnapshotServerStream) error {
	st, err := p.Members.Status(ctx)
	if err != nil {
		return rpcerrors.OfStore(err)
	}
	if !st.Embedded {
		return connect.NewError(connect.CodeFailedPrecondition, "an existing etcd cluster is saved by its own tools "+
			"(etcdctl snapshot save)")
	}
	to := bufio.NewWriterSize(parts{stream}, partSize)
	size, err := p.Members.Snapshot(ctx, to)
	if err == nil {
		err = to.Flush()
	}
	if err != nil {
		return rpcerrors.OfStore(err)
	}
	p.Log.Info("a snapshot was taken", "bytes", size)
	return nil
}

// parts sends what is written.
type parts struct {
	stream controllerv1connect.MemberServiceTakeSnapshotServerStream
}

func (p parts) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), partSize)
		if err := p.stream.Send(&controllerv1.TakeSnapshotResponse{Part: rest[:n]}); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(b), nil
}
