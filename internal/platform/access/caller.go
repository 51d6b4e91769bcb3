package access

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"connectrpc.com/connect/v2"

	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/pki"
)

// Caller is who calls.
type Caller struct {
	// Name is that of the token, of the person who signed in, or of the user at the socket.
	Name string
	// Token is nil for callers at the socket.
	Token *pki.APIRecord
	// Groups are those of the person or the token, as far as the controllers know.
	Groups []string
	// Access is what they may do.
	Access *roles.Access
	From   string
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

// GrantedTo is what the caller may do; all where nobody was asked, as in a call of the controller's own.
func GrantedTo(ctx context.Context) *roles.Access {
	if c, ok := Of(ctx); ok {
		return c.Access
	}
	return roles.NewAccess(roles.Grant{Role: roles.Admin})
}

func with(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// Title names the caller in a refusal.
func (c Caller) Title() string {
	name := cmp.Or(c.Name, "the caller")
	switch {
	case c.Token != nil && len(c.Groups) > 0:
		return name + " (token " + string(c.Token.ID) + ", groups " + strings.Join(c.Groups, ", ") + ")"
	case c.Token != nil:
		return name + " (token " + string(c.Token.ID) + ")"
	}
	return name
}

// may returns the grant by which the caller makes a call of that rule, or the error that says what is needed.
func (c Caller) may(r Rule) (roles.Grant, error) {
	if r.SignedIn && (c.Token == nil || c.Token.Person == "") {
		return roles.Grant{}, errors.New("you did not sign in here: a token of \"heddle access token create\" ends " +
			"when an admin revokes it")
	}
	if len(r.Needs) == 0 {
		return roles.Grant{}, nil
	}
	if r.Judged {
		if g, ok := c.Access.Somewhere(r.Needs...); ok {
			return g, nil
		}
	}
	for _, p := range r.Needs {
		if g, ok := c.Access.Allows(p, roles.Cluster()); ok {
			return g, nil
		}
	}
	return roles.Grant{}, &roles.Refusal{Who: c.Title(), Needs: r.Needs, Has: c.Access}
}

// Need returns an error unless the caller has the permission for each of the parts of the cluster. The call is recorded
// as refused then.
func Need(ctx context.Context, p roles.Permission, what string, parts ...roles.Scope) error {
	a := GrantedTo(ctx)
	for _, part := range parts {
		if !a.Has(p, part) {
			c, _ := Of(ctx)
			return Refused(&roles.Refusal{Who: c.Title(), Needs: []roles.Permission{p}, Of: part, What: what, Has: a})
		}
	}
	return nil
}

// Refused is the answer to who may not do what they asked for.
func Refused(why error) error {
	return connect.NewError(connect.CodePermissionDenied, why.Error()+explain)
}

// explain is how a refusal ends.
const explain = " (heddle access explain)"

func (c Caller) entry(call string, objects []string, by roles.Grant) audit.Entry {
	e := audit.Entry{Who: c.Name, Role: c.Access.Roles(), Groups: c.Groups, From: c.From, Call: call, Objects: objects}
	if by.Role != "" {
		e.Grant = by.String()
	}
	if c.Token != nil {
		e.Token, e.Issuer = string(c.Token.ID), c.Token.Issuer
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
// that is passed on to a host. parts are the port groups whose frames are shown; none for what may show any. It is
// called before the first of it is shown: it refuses who may not look, and records who does. The caller calls done when
// it ends.
func (g *Guard) Look(ctx context.Context, what string, parts []roles.Scope, objects ...string) (done func(error),
	err error) {
	c, _ := Of(ctx)
	if len(parts) == 0 {
		parts = []roles.Scope{roles.Cluster()}
	}
	var by roles.Grant
	for _, part := range parts {
		var ok bool
		if by, ok = c.Access.Allows(roles.Capture, part); !ok {
			why := &roles.Refusal{Who: c.Title(), Needs: []roles.Permission{roles.Capture}, Of: part, Has: c.Access,
				What: "captures and traces show what guests send"}
			g.refuseCaller(c, what, objects, why)
			return nil, Refused(why)
		}
	}
	return g.begin(ctx, c.entry(what, objects, by))
}

// Record is for calls by which a caller ends what they began themselves: it records the call and refuses nobody. The
// caller calls done when it ends.
func (g *Guard) Record(ctx context.Context, what string, objects ...string) (done func(error), err error) {
	c, _ := Of(ctx)
	return g.begin(ctx, c.entry(what, objects, roles.Grant{}))
}

// Whole refuses, and records, who lacks the permission for the whole cluster.
func (g *Guard) Whole(ctx context.Context, p roles.Permission, what string, objects ...string) error {
	c, _ := Of(ctx)
	if c.Access.Has(p, roles.Cluster()) {
		return nil
	}
	why := &roles.Refusal{Who: c.Title(), Needs: []roles.Permission{p}, Has: c.Access}
	g.refuseCaller(c, what, objects, why)
	return Refused(why)
}
