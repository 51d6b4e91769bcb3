package rpc

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/granting"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/access/sessions"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/spec"
)

// apiTokenKind is the kind of the records of tokens of people and tools.
const apiTokenKind store.Kind = "apiToken"

const (
	// defaultAPILife is how long a token counts where nobody says.
	defaultAPILife = 30 * 24 * time.Hour
	// keepExpired is how long a token that has expired is listed: its owner is told so, and not that it is unknown.
	keepExpired = 30 * 24 * time.Hour
	// mostPruned is how many of those that are older are removed at a time.
	mostPruned = 100
)

// apiToken finds the record of a token; nil for none.
func (s Front) apiToken(id identity.TokenID) *pki.APIRecord {
	o, ok := s.Store.Get(store.Key{Kind: apiTokenKind, Name: string(id)})
	if !ok {
		return nil
	}
	r, err := pki.DecodeAPIRecord(o.Doc)
	if err != nil {
		s.Log.Error("a token in the store counts no more", "token", id, "err", err)
		return nil
	}
	return r
}

// apiTokens are the records of all, by name and age.
func (s Front) apiTokens() (list []*pki.APIRecord) {
	for _, o := range s.Store.List(apiTokenKind) {
		if r := s.apiToken(identity.TokenID(o.Name)); r != nil {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *pki.APIRecord) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return a.Made.Compare(b.Made)
	})
	return list
}

// takeTokens takes in a batch of the store: what is under way with a token that was withdrawn ends, and so does what
// somebody does who lost a permission.
func (s Front) takeTokens(b store.Batch) {
	gone := func(e store.Event) bool { return e.Kind == apiTokenKind && e.Object == nil }
	if s.granted.Take(b, s.Store) || b.Reset || slices.ContainsFunc(b.Events, gone) {
		s.guard.Recheck()
	}
}

// desk answers people about tokens, grants and the audit log.
type desk struct {
	people
	granting.Service
	signing
}

// signing is how people sign in.
type signing = sessions.Service

func (s Front) desk() desk {
	grants := granting.Service{Store: s.Server.Store, Book: s.granted.Book, Token: s.apiToken, Tokens: s.apiTokens,
		Now: s.TLS.Now, GroupsOfProvider: s.SignIn != nil, Failed: rpcerrors.OfStore}
	return desk{people(s), grants, signing{Store: s.Server.Store, Kind: apiTokenKind, Tokens: s.apiTokens,
		Provider: s.SignIn, Guard: s.guard, Trust: s.trust, Now: s.TLS.Now, Failed: rpcerrors.OfStore}}
}

// WhoAmI says as whom the caller is known.
func (p people) WhoAmI(ctx context.Context, _ *controllerv1.WhoAmIRequest) (*controllerv1.WhoAmIResponse, error) {
	c, _ := access.Of(ctx)
	out := &controllerv1.WhoAmIResponse{Name: c.Name, Role: granting.Role(granting.Strongest(c.Access)),
		Look: c.Access.Has(roles.Capture, roles.Cluster()), Cluster: string(p.Authority.Trust().Cluster),
		Groups: c.Groups, Grants: granting.Grants(c.Access.Grants())}
	if c.Token != nil {
		out.Expires, out.TokenId = timestamppb.New(c.Token.Expires), string(c.Token.ID)
		out.SignedIn, out.Issuer = c.Token.Person != "", c.Token.Issuer
	}
	return out, nil
}

// GetTrust says by what callers know the controllers.
func (p people) GetTrust(context.Context, *controllerv1.GetTrustRequest) (*controllerv1.GetTrustResponse, error) {
	return Front(p).trust(), nil
}

func (s Front) trust() *controllerv1.GetTrustResponse {
	t := s.Authority.Trust()
	return &controllerv1.GetTrustResponse{Cluster: string(t.Cluster), Fingerprint: s.Authority.Fingerprint().String(),
		Roots: string(identity.PEMOf(t.Roots...)), Urls: s.apiURLs()}
}

// apiURLs are where the controllers answer people and tools.
func (s Front) apiURLs() (list []string) {
	for _, c := range s.Cluster() {
		if c.API != "" {
			list = append(list, "https://"+c.API)
		}
	}
	return list
}

// CreateAPIToken makes a token for a person or a tool.
func (p people) CreateAPIToken(ctx context.Context, q *controllerv1.CreateAPITokenRequest) (
	*controllerv1.CreateAPITokenResponse, error) {
	if !spec.ValidName(q.GetName()) {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Sprintf("%q is no name for whose token it is: "+
			"use letters, digits, . _ - / : and space inside", q.GetName()))
	}
	terms := pki.APITerms{Name: q.GetName(), Role: granting.RoleOf(q.GetRole()), Look: q.GetLook(),
		Life: defaultAPILife, By: access.NameOf(ctx)}
	for _, part := range q.GetScopes() {
		terms.Scopes = append(terms.Scopes, granting.ScopeOf(part))
	}
	if q.GetLasts() != nil {
		terms.Life = q.GetLasts().AsDuration()
	}
	now := p.TLS.Now()
	token, record, err := pki.NewAPIToken(terms, now)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	doc, err := record.Encode()
	if err != nil {
		return nil, err
	}
	changes := []store.Change{{Key: store.Key{Kind: apiTokenKind, Name: string(token.ID)}, Doc: doc,
		IfVersion: store.New}}
	if issuing(p).may(ctx) == nil { // by a wrong clock they may seem to have expired
		changes = append(changes, Front(p).longExpired(now)...)
	}
	if _, err := p.Store.Write(ctx, changes); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	access.Note(ctx, "token "+string(token.ID))
	return &controllerv1.CreateAPITokenResponse{Token: token.Text(), Id: string(token.ID),
		Expires: timestamppb.New(record.Expires), Trust: Front(p).trust()}, nil
}

// longExpired removes tokens that expired long ago, a few at a time.
func (s Front) longExpired(now time.Time) (changes []store.Change) {
	for _, r := range s.apiTokens() {
		if now.Sub(r.Expires) > keepExpired && len(changes) < mostPruned {
			changes = append(changes, store.Change{Key: store.Key{Kind: apiTokenKind, Name: string(r.ID)},
				Delete: true, IfVersion: store.Any})
		}
	}
	return changes
}

// ListAPITokens lists the tokens of people and tools.
func (p people) ListAPITokens(context.Context, *controllerv1.ListAPITokensRequest) (
	*controllerv1.ListAPITokensResponse, error) {
	out, now := &controllerv1.ListAPITokensResponse{}, p.TLS.Now()
	for _, r := range Front(p).apiTokens() {
		out.Tokens = append(out.Tokens, &controllerv1.AccessToken{Id: string(r.ID), Name: r.Name,
			Role: granting.Role(r.Role), Made: timestamppb.New(r.Made), Expires: timestamppb.New(r.Expires), By: r.By,
			Look:    roles.NewAccess(r.Granted()...).Has(roles.Capture, roles.Cluster()),
			Expired: now.After(r.Expires), Grants: granting.Grants(r.Granted()), Person: r.Person, Groups: r.Groups})
	}
	return out, nil
}

// RevokeAPIToken withdraws a token.
func (p people) RevokeAPIToken(ctx context.Context, q *controllerv1.RevokeAPITokenRequest) (
	*controllerv1.RevokeAPITokenResponse, error) {
	key := store.Key{Kind: apiTokenKind, Name: q.GetId()}
	o, ok := p.Store.Get(key)
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("there is no token %q: see heddle access token list", q.GetId()))
	}
	if r, err := pki.DecodeAPIRecord(o.Doc); err == nil {
		access.Note(ctx, "of "+r.Name)
	}
	changes := append([]store.Change{{Key: key, Delete: true, IfVersion: o.Version}},
		p.revoked.confirming(tokenAs(identity.TokenID(q.GetId())))...)
	if _, err := p.Store.Write(ctx, changes); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	return &controllerv1.RevokeAPITokenResponse{}, nil
}
