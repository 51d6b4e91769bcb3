package tokens

import (
	"context"
	"fmt"
	"log/slog"
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
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// Kind is the kind of the records of tokens of people and tools.
const Kind store.Kind = "apiToken"

const (
	// defaultAPILife is how long a token counts where nobody says.
	defaultAPILife = 30 * 24 * time.Hour
	// KeepExpired is how long a token that has expired is listed: its owner is told so, and not that it is unknown.
	KeepExpired = 30 * 24 * time.Hour
	// MostPruned is how many of those that are older are removed at a time.
	MostPruned = 100
)

// Service answers people about tokens.
type Service struct {
	Store Store
	// Authority is whose certificates callers are shown, Roster says where the controllers answer.
	Authority *pki.Current
	Roster    *peers.Roster
	Log       *slog.Logger
	Now       func() time.Time
	// ValidName reports whether somebody may be called so.
	ValidName func(string) bool
	// ClockFits reports that there is no sign that this controller's clock is wrong, by which tokens that count may
	// seem to have expired.
	ClockFits func(context.Context) bool
	// Confirming are the changes after which a token that was withdrawn needs nobody's confirmation any more.
	Confirming func(identity.TokenID) []store.Change
}

// Store is what a service needs of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
}

// urls are where the controllers answer people and tools.
func (s Service) urls() (list []string) {
	for _, c := range s.Roster.Cluster() {
		if c.API != "" {
			list = append(list, "https://"+c.API)
		}
	}
	return list
}

// Record finds the record of a token; nil for none.
func (s Service) Record(id identity.TokenID) *pki.APIRecord {
	o, ok := s.Store.Get(store.Key{Kind: Kind, Name: string(id)})
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

// All are the records of all, by name and age.
func (s Service) All() (list []*pki.APIRecord) {
	for _, o := range s.Store.List(Kind) {
		if r := s.Record(identity.TokenID(o.Name)); r != nil {
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

// WhoAmI says as whom the caller is known.
func (s Service) WhoAmI(ctx context.Context, _ *controllerv1.WhoAmIRequest) (*controllerv1.WhoAmIResponse, error) {
	c, _ := access.Of(ctx)
	out := &controllerv1.WhoAmIResponse{Name: c.Name, Role: granting.Role(granting.Strongest(c.Access)),
		Look: c.Access.Has(roles.Capture, roles.Cluster()), Cluster: string(s.Authority.Trust().Cluster),
		Groups: c.Groups, Grants: granting.Grants(c.Access.Grants())}
	if c.Token != nil {
		out.Expires, out.TokenId = timestamppb.New(c.Token.Expires), string(c.Token.ID)
		out.SignedIn, out.Issuer = c.Token.Person != "", c.Token.Issuer
	}
	return out, nil
}

// GetTrust says by what callers know the controllers.
func (s Service) GetTrust(context.Context, *controllerv1.GetTrustRequest) (*controllerv1.GetTrustResponse, error) {
	return s.Trust(), nil
}

// Trust is by what callers know the controllers.
func (s Service) Trust() *controllerv1.GetTrustResponse {
	t := s.Authority.Trust()
	return &controllerv1.GetTrustResponse{Cluster: string(t.Cluster), Fingerprint: s.Authority.Fingerprint().String(),
		Roots: string(identity.PEMOf(t.Roots...)), Urls: s.urls()}
}

// CreateAPIToken makes a token for a person or a tool.
func (s Service) CreateAPIToken(ctx context.Context, q *controllerv1.CreateAPITokenRequest) (
	*controllerv1.CreateAPITokenResponse, error) {
	if !s.ValidName(q.GetName()) {
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
	now := s.Now()
	token, record, err := pki.NewAPIToken(terms, now)
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err.Error())
	}
	doc, err := record.Encode()
	if err != nil {
		return nil, err
	}
	changes := []store.Change{{Key: store.Key{Kind: Kind, Name: string(token.ID)}, Doc: doc,
		IfVersion: store.New}}
	if s.ClockFits(ctx) { // by a wrong clock they may seem to have expired
		changes = append(changes, s.longExpired(now)...)
	}
	if _, err := s.Store.Write(ctx, changes); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	access.Note(ctx, "token "+string(token.ID))
	return &controllerv1.CreateAPITokenResponse{Token: token.Text(), Id: string(token.ID),
		Expires: timestamppb.New(record.Expires), Trust: s.Trust()}, nil
}

// longExpired removes tokens that expired long ago, a few at a time.
func (s Service) longExpired(now time.Time) (changes []store.Change) {
	for _, r := range s.All() {
		if now.Sub(r.Expires) > KeepExpired && len(changes) < MostPruned {
			changes = append(changes, store.Change{Key: store.Key{Kind: Kind, Name: string(r.ID)},
				Delete: true, IfVersion: store.Any})
		}
	}
	return changes
}

// ListAPITokens lists the tokens of people and tools.
func (s Service) ListAPITokens(context.Context, *controllerv1.ListAPITokensRequest) (
	*controllerv1.ListAPITokensResponse, error) {
	out, now := &controllerv1.ListAPITokensResponse{}, s.Now()
	for _, r := range s.All() {
		out.Tokens = append(out.Tokens, &controllerv1.AccessToken{Id: string(r.ID), Name: r.Name,
			Role: granting.Role(r.Role), Made: timestamppb.New(r.Made), Expires: timestamppb.New(r.Expires), By: r.By,
			Look:    roles.NewAccess(r.Granted()...).Has(roles.Capture, roles.Cluster()),
			Expired: now.After(r.Expires), Grants: granting.Grants(r.Granted()), Person: r.Person, Groups: r.Groups})
	}
	return out, nil
}

// RevokeAPIToken withdraws a token.
func (s Service) RevokeAPIToken(ctx context.Context, q *controllerv1.RevokeAPITokenRequest) (
	*controllerv1.RevokeAPITokenResponse, error) {
	key := store.Key{Kind: Kind, Name: q.GetId()}
	o, ok := s.Store.Get(key)
	if !ok {
		return nil, connect.NewError(connect.CodeNotFound,
			fmt.Sprintf("there is no token %q: see heddle access token list", q.GetId()))
	}
	if r, err := pki.DecodeAPIRecord(o.Doc); err == nil {
		access.Note(ctx, "of "+r.Name)
	}
	changes := append([]store.Change{{Key: key, Delete: true, IfVersion: o.Version}},
		s.Confirming(identity.TokenID(q.GetId()))...)
	if _, err := s.Store.Write(ctx, changes); err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	return &controllerv1.RevokeAPITokenResponse{}, nil
}
