package rpc

import (
	"context"
	"encoding/json"

	"heddle/internal/identity"
	"heddle/internal/platform/access/tokens"
	"heddle/internal/platform/health"
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
		changes = append(changes, tokens.JoinsLongExpired(p.Store, p.TLS.Now())...)
	}
	if _, err = p.Store.Write(ctx, changes); err != nil {
		return rpcerrors.OfStore(err)
	}
	return nil
}
