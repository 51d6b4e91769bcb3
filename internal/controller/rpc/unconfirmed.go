package rpc

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/identity"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

const (
	// tokenWord is the kind of a token in what says that it is not confirmed.
	tokenWord = "token"
	// mostConfirmed is how many are confirmed in a transaction: of a token two objects are written.
	mostConfirmed = 50
)

// Unconfirmed says what a snapshot has that may have been taken out after it was made.
type Unconfirmed struct {
	// Hosts are their names, Tokens those of their owners with their ids; they count when somebody has confirmed them.
	Hosts, Tokens []string
	// JoinTokens and SignIns are how many tokens for joining, and of people who signed in, were removed: others are
	// made as quickly.
	JoinTokens, SignIns int
}

// listing is what is needed of a store to look at it.
type listing interface {
	List(store.Kind) []store.Object
}

// Unconfirm are the changes after which what a snapshot has of hosts and tokens counts when an admin has confirmed it.
func Unconfirm(st listing, now time.Time) (changes []store.Change, out Unconfirmed, err error) {
	waits := func(as, name string) {
		text, failed := json.Marshal(pki.Revocation{At: now, By: "heddle-controller restore", Unconfirmed: true,
			Name: name})
		if err == nil {
			err = failed
		}
		changes = append(changes, store.Change{Key: store.Key{Kind: revokedKind, Name: as}, Doc: text,
			IfVersion: store.Any})
	}
	ends := func(o store.Object) {
		changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
	}
	for _, o := range st.List(store.KindHost) {
		waits(pki.RevokedAs(identity.Name{Kind: identity.Host, ID: o.ID}), o.Name)
		out.Hosts = append(out.Hosts, o.Name)
	}
	for _, o := range st.List(tokens.Kind) {
		r, bad := pki.DecodeAPIRecord(o.Doc)
		switch {
		case bad != nil: // it counts for nothing; whether one has expired, a wrong clock does not say
		case r.Person != "":
			out.SignIns++
			ends(o)
		default:
			waiting, failed := tokens.Waiting(o, r)
			if err == nil {
				err = failed
			}
			changes = append(changes, waiting)
			waits(tokenAs(r.ID), r.Name)
			out.Tokens = append(out.Tokens, r.Name+" ("+string(r.ID)+")")
		}
	}
	for _, o := range st.List(store.KindToken) {
		if r, bad := pki.DecodeJoinRecord(o.Doc); bad != nil || r.Used == nil {
			out.JoinTokens++
		}
		ends(o) // also one that was used: the host that joined with it may ask again, and may have been removed since
	}
	return changes, out, err
}

// tokenAs is how the store knows a token that nobody has confirmed.
func tokenAs(id identity.TokenID) string { return tokenWord + "/" + string(id) }

// unconfirmed are the hosts and tokens that nobody has confirmed since a restore, by kind and name.
func (r *revocations) unconfirmed() (list []*controllerv1.RestoredIdentity) {
	for _, o := range r.store.List(revokedKind) {
		e, err := pki.DecodeRevocation(o.Doc)
		kind, id, ok := strings.Cut(o.Name, "/")
		if err == nil && ok && e.Unconfirmed && (kind != tokenWord || r.tokenCounts(id)) {
			list = append(list, &controllerv1.RestoredIdentity{Kind: kind, Id: id, Name: e.Name})
		}
	}
	slices.SortFunc(list, func(a, b *controllerv1.RestoredIdentity) int {
		return cmp.Or(strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()),
			strings.Compare(a.GetId(), b.GetId()))
	})
	return list
}

// tokenCounts reports whether there is a token that has not expired.
func (r *revocations) tokenCounts(id string) bool {
	o, ok := r.store.Get(store.Key{Kind: tokens.Kind, Name: id})
	if !ok {
		return false
	}
	t, err := pki.DecodeAPIRecord(o.Doc)
	return err == nil && !r.now().After(t.Expires)
}

// unconfirmedToken reports whether nobody has confirmed a token since a restore.
func (r *revocations) unconfirmedToken(id identity.TokenID) bool {
	return len(r.unmarking(tokenAs(id))) > 0
}

// confirming are the changes after which a host or a token counts that nobody has confirmed yet, or that was confirmed
// at a controller of the version before; none for others.
func (r *revocations) confirming(as string) []store.Change {
	changes := r.unmarking(as)
	if id, is := strings.CutPrefix(as, tokenWord+"/"); is {
		changes = append(changes, tokens.Confirming(r.store, id)...)
	}
	return changes
}

// halfConfirmed are the tokens that were confirmed at a controller of the version before, where they count when this
// one has confirmed them as well.
func (r *revocations) halfConfirmed() (list []*controllerv1.RestoredIdentity) {
	marked := func(id string) bool { return r.unconfirmedToken(identity.TokenID(id)) }
	for _, id := range tokens.HalfConfirmed(r.store, marked) {
		if r.tokenCounts(id) {
			list = append(list, &controllerv1.RestoredIdentity{Kind: tokenWord, Id: id, Name: r.tokenName(id)})
		}
	}
	return list
}

// tokenName is the name of a token's owner.
func (r *revocations) tokenName(id string) string {
	o, _ := r.store.Get(store.Key{Kind: tokens.Kind, Name: id})
	t, err := pki.DecodeAPIRecord(o.Doc)
	if err != nil {
		return ""
	}
	return t.Owner()
}

// unmarking is the change that removes the mark of a host or a token that nobody has confirmed yet; none for others.
func (r *revocations) unmarking(as string) []store.Change {
	o, ok := r.store.Get(store.Key{Kind: revokedKind, Name: as})
	if !ok {
		return nil
	}
	if e, err := pki.DecodeRevocation(o.Doc); err != nil || !e.Unconfirmed {
		return nil
	}
	return []store.Change{{Key: o.Key, Delete: true, IfVersion: o.Version}}
}

// ConfirmRestored confirms what a snapshot had of hosts and tokens.
func (p people) ConfirmRestored(ctx context.Context, q *controllerv1.ConfirmRestoredRequest) (
	*controllerv1.ConfirmRestoredResponse, error) {
	if err := p.Current(ctx); err != nil {
		return nil, err
	}
	out := &controllerv1.ConfirmRestoredResponse{}
	missing := slices.Clone(q.GetNames())
	half := p.revoked.halfConfirmed()
	for i, one := range slices.Concat(half, p.revoked.unconfirmed()) {
		named := func(name string) bool {
			return name == one.GetId() || name == one.GetName() && one.GetKind() != tokenWord
		}
		if q.GetAll() || slices.ContainsFunc(q.GetNames(), named) {
			missing = slices.DeleteFunc(missing, named)
			out.Confirmed = append(out.Confirmed, one)
		} else if i >= len(half) { // the others count here already
			out.Waiting = append(out.Waiting, one)
		}
	}
	if len(missing) > 0 {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("nothing waits to be confirmed by the name or "+
			"id %s: heddle-controller confirm lists what does", strings.Join(missing, ", ")))
	}
	return out, confirmAll(ctx, p.Server, out)
}

// confirmAll has those count that are to be confirmed, as many in a transaction as fit. Where one fails after others
// are made, the answer says which count and why the others wait still.
func confirmAll(ctx context.Context, s *Server, out *controllerv1.ConfirmRestoredResponse) error {
	all := out.GetConfirmed()
	out.Confirmed = nil
	for some := range slices.Chunk(all, mostConfirmed) {
		if err := confirmSome(ctx, s, some); err != nil {
			if len(out.GetConfirmed()) == 0 {
				return err
			}
			out.Waiting = append(slices.Clone(all[len(out.GetConfirmed()):]), out.GetWaiting()...)
			out.Stopped = err.Error()
			s.Log.Warn("not all that was to be confirmed is", "confirmed", len(out.GetConfirmed()), "of", len(all),
				"err", err)
			return nil
		}
		out.Confirmed = append(out.Confirmed, some...)
	}
	return nil
}

// confirmSome confirms as many as fit into a transaction.
func confirmSome(ctx context.Context, s *Server, some []*controllerv1.RestoredIdentity) error {
	var as []string
	for _, one := range some {
		as = append(as, one.GetKind()+"/"+one.GetId())
	}
	changes, err := oldListOf(s).confirming(as...)
	if err != nil || len(changes) == 0 { // somebody else has confirmed them
		return err
	}
	if _, err := s.Store.Write(ctx, changes); err != nil {
		return rpcerrors.OfStore(err)
	}
	for _, one := range some {
		access.Note(ctx, one.GetKind()+" "+one.GetName()+" ("+one.GetId()+")")
	}
	return nil
}
