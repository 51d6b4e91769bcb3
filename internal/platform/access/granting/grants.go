package granting

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// Bounds of what a cluster keeps.
const (
	mostGrants  = 10_000
	mostGroups  = 1_000
	mostMembers = 1_000
)

// Store is what is needed of the store.
type Store interface {
	Lister
	Get(store.Key) (store.Object, bool)
	Write(context.Context, []store.Change) (int64, error)
	Sync(context.Context) error
}

// Service answers people about grants and groups.
type Service struct {
	Store Store
	Book  func() *access.Book
	// Token finds a token by its id; nil for none. Tokens lists all.
	Token  func(identity.TokenID) *pki.APIRecord
	Tokens func() []*pki.APIRecord
	Now    func() time.Time
	// GroupsOfProvider: an identity provider names groups of those who sign in.
	GroupsOfProvider bool
	// Failed puts an error of the store into the contract's words.
	Failed func(error) error
}

func invalid(err error) error { return connect.NewError(connect.CodeInvalidArgument, err.Error()) }

// CreateGrant gives somebody a role for a part of the cluster.
func (s Service) CreateGrant(ctx context.Context, q *controllerv1.CreateGrantRequest) (
	*controllerv1.CreateGrantResponse, error) {
	g := roles.Grant{Who: whoOf(q.GetWho()), Role: RoleOf(q.GetRole()), Scope: ScopeOf(q.GetScope()),
		Made: s.Now().UTC(), By: access.NameOf(ctx)}
	if err := g.Check(); err != nil {
		return nil, invalid(err)
	}
	if g.Who.Kind == roles.Token && s.Token(identity.TokenID(g.Who.Name)) == nil {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("there is no token %q: see heddle access token list", g.Who.Name))
	}
	if err := s.Store.Sync(ctx); err != nil {
		return nil, s.Failed(err)
	}
	all := s.Store.List(grantKind)
	if len(all) >= mostGrants {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Sprintf("the cluster has %d grants, and no "+
			"more are kept: grant roles to groups, and revoke what nobody needs", len(all)))
	}
	for _, o := range all {
		var had roles.Grant
		if json.Unmarshal(o.Doc, &had) == nil && had.Who == g.Who && had.Role == g.Role && had.Scope == g.Scope {
			had.ID = o.Name
			return &controllerv1.CreateGrantResponse{Grant: Grant(had)}, nil
		}
	}
	g.ID = string(identity.NewTokenID())
	doc, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	if _, err := s.Store.Write(ctx, []store.Change{{Key: store.Key{Kind: grantKind, Name: g.ID}, Doc: doc,
		IfVersion: store.New}}); err != nil {
		return nil, s.Failed(err)
	}
	access.Note(ctx, "granted "+g.String())
	return &controllerv1.CreateGrantResponse{Grant: Grant(g)}, nil
}

// ListGrants lists the grants, and what tokens allow by themselves.
func (s Service) ListGrants(_ context.Context, q *controllerv1.ListGrantsRequest) (*controllerv1.ListGrantsResponse,
	error) {
	all := s.Book().Grants()
	for _, r := range s.Tokens() {
		if !s.Now().After(r.Expires) {
			for _, g := range r.Granted() {
				g.Made, g.By = r.Made, r.By
				all = append(all, g)
			}
		}
	}
	if q.GetWho() != nil {
		who := whoOf(q.GetWho())
		all = slices.DeleteFunc(all, func(g roles.Grant) bool { return g.Who != who })
	}
	return &controllerv1.ListGrantsResponse{Grants: Grants(all)}, nil
}

// RevokeGrant takes a grant back.
func (s Service) RevokeGrant(ctx context.Context, q *controllerv1.RevokeGrantRequest) (
	*controllerv1.RevokeGrantResponse, error) {
	key := store.Key{Kind: grantKind, Name: q.GetId()}
	o, ok := s.Store.Get(key)
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("there is no grant %q: see heddle access "+
			"grant list; what a token allows by itself ends with the token", q.GetId()))
	}
	var g roles.Grant
	if err := json.Unmarshal(o.Doc, &g); err == nil {
		access.Note(ctx, "revoked "+g.String())
	}
	if _, err := s.Store.Write(ctx, []store.Change{{Key: key, Delete: true, IfVersion: o.Version}}); err != nil {
		return nil, s.Failed(err)
	}
	return &controllerv1.RevokeGrantResponse{Grant: Grant(g)}, nil
}

// PutGroup makes a local group, or gives it other members.
func (s Service) PutGroup(ctx context.Context, q *controllerv1.PutGroupRequest) (*controllerv1.PutGroupResponse,
	error) {
	if err := (roles.Who{Kind: roles.Group, Name: q.GetName()}).Check(); err != nil {
		return nil, invalid(err)
	}
	if err := s.Store.Sync(ctx); err != nil {
		return nil, s.Failed(err)
	}
	key := store.Key{Kind: groupKind, Name: q.GetName()}
	g := access.LocalGroup{Name: q.GetName(), Made: s.Now().UTC(), By: access.NameOf(ctx)}
	o, there := s.Store.Get(key)
	if there {
		if err := json.Unmarshal(o.Doc, &g); err != nil {
			return nil, fmt.Errorf("group %s can't be read: %w", q.GetName(), err)
		}
	} else if len(s.Store.List(groupKind)) >= mostGroups {
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Sprintf("the cluster has %d groups, and no "+
			"more are kept", mostGroups))
	}
	if err := s.change(ctx, &g, q); err != nil {
		return nil, err
	}
	doc, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	if _, err := s.Store.Write(ctx, []store.Change{{Key: key, Doc: doc, IfVersion: o.Version}}); err != nil {
		return nil, s.Failed(err)
	}
	return &controllerv1.PutGroupResponse{Group: groupText(&g)}, nil
}

// change adds and removes members.
func (s Service) change(ctx context.Context, g *access.LocalGroup, q *controllerv1.PutGroupRequest) error {
	for _, m := range q.GetAdd() {
		w := whoOf(m)
		err := w.Check()
		if err == nil && w.Kind == roles.Group {
			err = errors.New("members of a group are people and tokens, not groups")
		}
		if err != nil {
			return invalid(err)
		}
		if w.Kind == roles.Token && s.Token(identity.TokenID(w.Name)) == nil {
			return connect.NewError(connect.CodeNotFound,
				fmt.Sprintf("there is no token %q: see heddle access token list", w.Name))
		}
		if !slices.Contains(g.Members, w) {
			g.Members = append(g.Members, w)
			access.Note(ctx, "added "+w.String())
		}
	}
	for _, m := range q.GetRemove() {
		w := whoOf(m)
		i := slices.Index(g.Members, w)
		if i < 0 {
			return connect.NewError(connect.CodeNotFound, fmt.Sprintf("%s is not in group %s", w, g.Name))
		}
		g.Members = slices.Delete(g.Members, i, i+1)
		access.Note(ctx, "removed "+w.String())
	}
	if len(g.Members) > mostMembers {
		return invalid(fmt.Errorf("a group has at most %d members: let the identity provider keep larger ones",
			mostMembers))
	}
	slices.SortFunc(g.Members, roles.Who.Compare)
	return nil
}

func groupText(g *access.LocalGroup) *controllerv1.AccessGroup {
	out := &controllerv1.AccessGroup{Name: g.Name, Made: timestamppb.New(g.Made), By: g.By}
	for _, m := range g.Members {
		out.Members = append(out.Members, grantee(m))
	}
	return out
}

// ListGroups lists the local groups.
func (s Service) ListGroups(context.Context, *controllerv1.ListGroupsRequest) (*controllerv1.ListGroupsResponse,
	error) {
	out := &controllerv1.ListGroupsResponse{}
	for _, o := range s.Store.List(groupKind) {
		g := access.LocalGroup{}
		if json.Unmarshal(o.Doc, &g) == nil {
			out.Groups = append(out.Groups, groupText(&g))
		}
	}
	slices.SortFunc(out.GetGroups(), func(a, b *controllerv1.AccessGroup) int {
		return (roles.Who{Name: a.GetName()}).Compare(roles.Who{Name: b.GetName()})
	})
	return out, nil
}

// RemoveGroup removes a local group. Grants to it stay: they count for a group of that name of the identity provider.
func (s Service) RemoveGroup(ctx context.Context, q *controllerv1.RemoveGroupRequest) (
	*controllerv1.RemoveGroupResponse, error) {
	key := store.Key{Kind: groupKind, Name: q.GetName()}
	o, ok := s.Store.Get(key)
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("there is no local group %q: see heddle access group list", q.GetName()))
	}
	if _, err := s.Store.Write(ctx, []store.Change{{Key: key, Delete: true, IfVersion: o.Version}}); err != nil {
		return nil, s.Failed(err)
	}
	return &controllerv1.RemoveGroupResponse{}, nil
}
