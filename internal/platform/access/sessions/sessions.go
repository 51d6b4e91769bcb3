package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/signin"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/store"
)

// usedKind is the kind of marks of ID tokens that were shown, by their hashes.
const usedKind store.Kind = "idToken"

// Bounds of what the cluster keeps.
const (
	// mostOf is how many sign-ins of a person count at a time: a further one ends the oldest.
	mostOf = 16
	// most is how many there are in all.
	most = 20_000
	// mostPruned is how many marks and tokens that have ended are removed at a time.
	mostPruned = 64
)

// Store is what is needed of the store.
type Store interface {
	Get(store.Key) (store.Object, bool)
	List(store.Kind) []store.Object
	Write(context.Context, []store.Change) (int64, error)
}

// Service answers who signs in and out.
type Service struct {
	Store Store
	// Kind is the kind of the records of tokens, Tokens lists all.
	Kind   store.Kind
	Tokens func() []*pki.APIRecord
	// Provider is nil where nobody signs in.
	Provider *signin.Provider
	Guard    *access.Guard
	Trust    func() *controllerv1.GetTrustResponse
	Now      func() time.Time
	// Failed puts an error of the store into the contract's words.
	Failed func(error) error
}

func without() error {
	return connect.NewError(connect.CodeFailedPrecondition, "this cluster has no identity provider: ask its admin for "+
		"a token, or for heddle-controller --oidc-issuer")
}

// GetSignIn says by which identity provider people sign in.
func (s Service) GetSignIn(ctx context.Context, _ *controllerv1.GetSignInRequest) (*controllerv1.GetSignInResponse,
	error) {
	if s.Provider == nil {
		return nil, without()
	}
	t, err := s.Provider.Terms(ctx)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, err.Error())
	}
	return &controllerv1.GetSignInResponse{Issuer: t.Issuer, ClientId: t.ClientID, Scopes: t.Scopes,
		AuthorizationUrl: t.Endpoints.Authorization, TokenUrl: t.Endpoints.Token, DeviceUrl: t.Endpoints.Device,
		Ca: t.CA, RevocationUrl: t.Endpoints.Revocation}, nil
}

// SignIn gives a token to a person whom the identity provider knows.
func (s Service) SignIn(ctx context.Context, q *controllerv1.SignInRequest) (*controllerv1.SignInResponse, error) {
	if s.Provider == nil {
		return nil, without()
	}
	p, err := s.Provider.Verify(ctx, q.GetIdToken(), q.GetNonce())
	var away *signin.AwayError
	switch {
	case errors.As(err, &away):
		return nil, connect.NewError(connect.CodeUnavailable, err.Error())
	case err != nil:
		return nil, s.Guard.NotSignedIn(ctx, access.SigningIn{}, err)
	}
	who := access.SigningIn{Person: p.Name, Issuer: p.Issuer, Groups: p.Groups}
	if s.shown(p) { // before anything is recorded: who shows a token again and again fills no log of changes
		return nil, s.Guard.NotSignedIn(ctx, who, errShown())
	}
	token, record := pki.NewSignIn(p.Name, p.Issuer, p.Groups, s.Provider.Life(), s.Now())
	done, err := s.Guard.SignIn(ctx, who, string(token.ID))
	if err != nil {
		return nil, err
	}
	err = s.keep(ctx, p, record)
	done(err)
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		return nil, s.Guard.NotSignedIn(ctx, who, errShown())
	}
	if err != nil {
		return nil, err
	}
	return &controllerv1.SignInResponse{Token: token.Text(), Id: string(token.ID), Name: p.Name, Groups: p.Groups,
		Expires: timestamppb.New(record.Expires), Trust: s.Trust()}, nil
}

// shown reports whether somebody has signed in by that ID token.
func (s Service) shown(p *signin.Person) bool {
	_, ok := s.Store.Get(store.Key{Kind: usedKind, Name: p.Token})
	return ok
}

func errShown() error { return &signin.TokenError{Why: "it was shown before, and counts once"} }

// used is the mark of an ID token that was shown.
type used struct {
	Expires time.Time `json:"expires"`
}

// keep writes the record of a person's token, and that the ID token was shown, both or neither.
func (s Service) keep(ctx context.Context, p *signin.Person, r *pki.APIRecord) error {
	ended, err := s.prune(p.Name)
	if err != nil {
		return err
	}
	doc, err := r.Encode()
	if err != nil {
		return err
	}
	mark, err := json.Marshal(used{p.Expires})
	if err != nil {
		return err
	}
	changes := append([]store.Change{
		{Key: store.Key{Kind: usedKind, Name: p.Token}, Doc: mark, IfVersion: store.New},
		{Key: store.Key{Kind: s.Kind, Name: string(r.ID)}, Doc: doc, IfVersion: store.New}}, ended...)
	_, err = s.Store.Write(ctx, changes)
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		return err
	}
	return s.Failed(err)
}

// prune are the changes that remove what has ended, and the oldest sign-ins of who has too many.
func (s Service) prune(person string) (changes []store.Change, err error) {
	now := s.Now()
	remove := func(kind store.Kind, name string) {
		if len(changes) < mostPruned {
			changes = append(changes, store.Change{Key: store.Key{Kind: kind, Name: name}, Delete: true,
				IfVersion: store.Any})
		}
	}
	marks := s.Store.List(usedKind)
	for _, o := range marks {
		var u used
		if json.Unmarshal(o.Doc, &u) != nil || now.After(u.Expires) {
			remove(usedKind, o.Name)
		}
	}
	if len(marks) >= most && len(changes) == 0 { // otherwise there are fewer afterwards, or as many
		return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Sprintf("%d people signed in of late, and no "+
			"more can until some of their provider's tokens end", most))
	}
	var own []*pki.APIRecord // by age
	for _, r := range s.Tokens() {
		switch {
		case r.Person == "":
		case now.After(r.Expires):
			remove(s.Kind, string(r.ID))
		case r.Person == person:
			own = append(own, r)
		}
	}
	for i := 0; i <= len(own)-mostOf; i++ {
		remove(s.Kind, string(own[i].ID))
	}
	return changes, nil
}

// signOutTime bounds how long the store may take to withdraw a token.
const signOutTime = 30 * time.Second

// SignOut withdraws the caller's own token.
func (s Service) SignOut(ctx context.Context, _ *controllerv1.SignOutRequest) (*controllerv1.SignOutResponse, error) {
	c, _ := access.Of(ctx) // who signed in, by the call's rule
	// The call ends with the token; the change does not.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), signOutTime)
	defer cancel()
	if _, err := s.Store.Write(ctx, []store.Change{{Key: store.Key{Kind: s.Kind, Name: string(c.Token.ID)},
		Delete: true, IfVersion: store.Any}}); err != nil {
		return nil, s.Failed(err)
	}
	return &controllerv1.SignOutResponse{}, nil
}
