package rpc

import (
	"context"
	"slices"

	"heddle/internal/identity"
	"heddle/internal/platform/access/granting"
	"heddle/internal/platform/access/sessions"
	"heddle/internal/platform/access/tokens"
	auditing "heddle/internal/platform/audit/reading"
	"heddle/internal/platform/health"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/spec"
)

// takeTokens takes in a batch of the store: what is under way with a token that was withdrawn ends, and so does what
// somebody does who lost a permission.
func (s *Server) takeTokens(b store.Batch) {
	gone := func(e store.Event) bool { return e.Kind == tokens.Kind && e.Object == nil }
	if s.granted.Take(b, s.Store) || b.Reset || slices.ContainsFunc(b.Events, gone) {
		s.guard.Recheck()
	}
}

// desk answers people about tokens, grants and the audit log.
type desk struct {
	tokens.Service
	reading
	grants
	signing
}

// What a desk is made of: each has a name of its own there.
type (
	reading = auditing.Service
	grants  = granting.Service
	signing = sessions.Service
)

// deskOf is the desk of a server.
func deskOf(s *Server) desk {
	t := s.tokens
	grants := granting.Service{Store: s.Store, Book: s.granted.Book, Token: t.Record, Tokens: t.All, Now: s.TLS.Now,
		GroupsOfProvider: s.SignIn != nil, Failed: rpcerrors.OfStore}
	return desk{t, s.auditing, grants, signing{Store: s.Store, Kind: tokens.Kind, Tokens: t.All, Provider: s.SignIn,
		Guard: s.guard, Trust: t.Trust, Now: s.TLS.Now, Failed: rpcerrors.OfStore}}
}

// tokensOf are the tokens of people and tools of a server.
func tokensOf(s *Server) tokens.Service {
	return tokens.Service{Store: s.Store, Authority: s.Authority, Roster: s.Roster, Log: s.Log, Now: s.TLS.Now,
		ValidName: spec.ValidName, ClockFits: func(ctx context.Context) bool {
			return s.issuing.Fits(ctx, health.Clocks.Doubted)
		},
		Confirming: func(id identity.TokenID) []store.Change { return s.revoked.unmarking(tokenAs(id)) }}
}
