// Package access is who of the people and tools may do what at a controller: it knows callers by their tokens, bounds
// what they send, holds each call against its rule, and records it.
package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/audit"
	"heddle/internal/controller/pki"
	"heddle/internal/identity"
)

// Caller is who calls.
type Caller struct {
	// Name is that of the token, or of the user at the socket.
	Name string
	// Token is nil for callers at the socket.
	Token *pki.APIRecord
	Role  identity.Role
	From  string
}

type callerKey struct{}

// Of is who calls; ok is false where nobody was asked, as in a call of the controller's own.
func Of(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// NameOf is who calls, for what is kept of who did something.
func NameOf(ctx context.Context) string {
	c, _ := Of(ctx)
	return cmp.Or(c.Name, "the controller")
}

func with(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// may returns an error that says what is needed where the caller may not make a call of that rule.
func (c Caller) may(r Rule) error {
	if c.Token == nil && c.Role.Covers(r.Role) {
		return nil
	}
	if c.Token == nil {
		return fmt.Errorf("this needs %s, and %s has no role", r.Role, cmp.Or(c.Name, "the caller"))
	}
	if r.Look {
		if err := c.Token.MayLook(); err != nil {
			return err
		}
	}
	return c.Token.May(r.Role)
}

func (c Caller) entry(call string, objects []string) audit.Entry {
	e := audit.Entry{Who: c.Name, Role: c.Role.String(), From: c.From, Call: call, Objects: objects}
	if c.Token != nil {
		e.Token = string(c.Token.ID)
	}
	return e
}

type notesKey struct{}

// notes are the objects that a call turns out to be about.
type notes struct {
	mu   sync.Mutex
	list []string
}

// Note adds objects to the record of the call under way, such as "portGroup dvs/web changed".
func Note(ctx context.Context, objects ...string) {
	if n, ok := ctx.Value(notesKey{}).(*notes); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.list = append(n.list, objects...)
	}
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// Look is for calls that show what guests send, where that is known only once the call has been read, such as a capture
// that is passed on to a host. It is called before the first of it is shown: it refuses who may not look, and records
// who does. The caller calls done when it ends.
func (g *Guard) Look(ctx context.Context, what string, objects ...string) (done func(error), err error) {
	c, _ := Of(ctx)
	if err := c.may(Rule{Role: identity.Viewer, Look: true}); err != nil {
		g.refuse(c.entry(what, objects), err)
		return nil, connect.NewError(connect.CodePermissionDenied, err.Error())
	}
	return g.begin(ctx, c.entry(what, objects))
}
