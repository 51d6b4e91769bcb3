package rpc

import (
	"context"
	"encoding/json"
	"time"

	"heddle/internal/identity"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/health"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
)

// keepToken writes the record of a new token, of a host or a controller that is to join, and removes some of those that
// expired long ago.
func (p people) keepToken(ctx context.Context, id identity.TokenID, record any) error {
	doc, err := json.Marshal(record)
	if err != nil {
		return err
	}
	changes := []store.Change{{Key: store.Key{Kind: store.KindToken, Name: string(id)}, Doc: doc, IfVersion: store.New}}
	if p.issuing.Fits(ctx, health.Clocks.Doubted) { // by a wrong clock they may seem to have expired
		changes = append(changes, joinsLongExpired(p.Store, p.TLS.Now())...)
	}
	if _, err = p.Store.Write(ctx, changes); err != nil {
		return rpcerrors.OfStore(err)
	}
	return nil
}

// joinsLongExpired removes tokens for joining that expired long ago, a few at a time: they count for nothing, whether a
// host has joined by them or not.
func joinsLongExpired(st listing, now time.Time) (changes []store.Change) {
	for _, o := range st.List(store.KindToken) {
		r, err := pki.DecodeJoinRecord(o.Doc)
		if err == nil && now.Sub(r.Expires) > tokens.KeepExpired && len(changes) < tokens.MostPruned {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	return changes
}

// mostTokensFor is how many of them are removed with a host; the others take the place of nobody.
const mostTokensFor = 32

// tokensFor removes tokens that take the place of a host.
func tokensFor(st listing, host string) (changes []store.Change) {
	for _, o := range st.List(store.KindToken) {
		r, err := pki.DecodeJoinRecord(o.Doc)
		if err == nil && r.Replaces == host && len(changes) < mostTokensFor {
			changes = append(changes, store.Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
	}
	return changes
}
