package access

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/api"
	"heddle/internal/identity"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/pki"
)

// Bounds of requests.
const (
	// readTime is how long a request may take to come, writeTime how long each part of the answer may take to be read.
	readTime  = 30 * time.Second
	writeTime = 30 * time.Second
)

// Options are what a guard needs.
type Options struct {
	// Token finds the record of a token; nil for none.
	Token func(identity.TokenID) *pki.APIRecord
	// Unconfirmed says of a token whether nobody has confirmed it since a restore; nil for none.
	Unconfirmed func(identity.TokenID) bool
	// Rules are those of the calls; Rules() if it is nil.
	Rules Table
	// Book are the grants and groups at present.
	Book  func() *Book
	Audit *audit.Log
	Log   *slog.Logger
	Now   func() time.Time
	// ReadTime is how long a request may take to come; readTime if it is zero.
	ReadTime time.Duration
}

// Guard stands before what people and tools call.
type Guard struct {
	Options
	rooms
	// throttle bounds refusals by addresses, turned those by callers.
	throttle, turned *throttle

	mu    sync.Mutex
	calls map[audit.Result]int64
	in    map[*visit]struct{}
}

// visit is a request of a token under way.
type visit struct {
	token  identity.TokenID
	access *roles.Access
	cut    context.CancelCauseFunc
}

// New makes a guard.
func New(o Options) *Guard {
	if o.ReadTime == 0 {
		o.ReadTime = readTime
	}
	if o.Rules == nil {
		o.Rules = Rules()
	}
	return &Guard{Options: o, rooms: newRooms(),
		throttle: newThrottle(o.Now()), turned: newThrottle(o.Now()),
		in:    map[*visit]struct{}{},
		calls: map[audit.Result]int64{audit.Done: 0, audit.Failed: 0, audit.Refused: 0}}
}

// Local lets callers through that are who they are by the socket's mode: they may do all.
func (g *Guard) Local(next http.Handler, who func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(Patient(w, writeTime), r.WithContext(with(r.Context(), AtSocket(who(r)))))
	})
}

// AtSocket is a caller at the controller's own socket: they may do all.
func AtSocket(name string) Caller {
	return Caller{Name: name, From: "socket", Access: roles.NewAccess(roles.Grant{Role: roles.Admin})}
}

// Known is the caller who shows that token.
func (g *Guard) Known(r *pki.APIRecord, from string) Caller {
	groups, a := g.book().Of(r)
	return Caller{Name: r.Owner(), Token: r, Groups: groups, Access: a, From: from}
}

func (g *Guard) book() *Book {
	if g.Book == nil {
		return nil
	}
	return g.Book()
}

// Remote lets callers through that show a token. admitted is called for each of their requests.
func (g *Guard) Remote(next http.Handler, admitted func(*http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.Rules.Of(r.URL.Path).Open && r.Header.Get("Authorization") == "" {
			g.open(w, r, next)
			return
		}
		record, err := g.authenticate(r)
		if err != nil {
			g.turnAway(w, r, err)
			return
		}
		admitted(r)
		c := g.Known(record, r.RemoteAddr)
		ctx, leave := g.enter(r.Context(), record, c.Access)
		defer leave()
		g.answer(w, r.WithContext(with(ctx, c)), c, next)
	})
}

// authenticate is the token of a request, which counts now.
func (g *Guard) authenticate(r *http.Request) (*pki.APIRecord, error) {
	text := r.Header.Get("Authorization")
	word, found := "", false
	if scheme, rest, ok := strings.Cut(text, " "); ok && strings.EqualFold(scheme, "Bearer") {
		word, found = rest, true
	}
	if !found {
		return nil, errors.New("this needs a token: send \"Authorization: Bearer ht1.…\"; an admin makes one with " +
			"\"heddle access token create\"")
	}
	token, err := identity.ParseAPIToken(word)
	if err != nil {
		return nil, err
	}
	record := g.Token(token.ID)
	err = record.Check(token, g.Now())
	if err == nil && g.Unconfirmed != nil && g.Unconfirmed(token.ID) {
		err = &identity.TokenError{Fault: identity.Unconfirmed, ID: token.ID}
	}
	return record, err
}

// turnAway answers who has no token that counts.
func (g *Guard) turnAway(w http.ResponseWriter, r *http.Request, why error) {
	w.Header().Set("Connection", "close") // who guesses has to shake hands each time
	within, times := g.throttle.failed(r.RemoteAddr, g.Now())
	if !within {
		w.Header().Set("Retry-After", "60")
		g.write(w, r, connect.NewError(connect.CodeResourceExhausted, "too many requests from your address had no "+
			"token that counts: try again in a minute, with one that does"))
		return
	}
	e := audit.Entry{From: r.RemoteAddr, Call: callOf(r.URL.Path), Times: times}
	if times == 1 {
		e.Times = 0
	}
	var token *identity.TokenError
	if errors.As(why, &token) {
		e.Token = string(token.ID)
	}
	g.refuse(e, why)
	w.Header().Set("WWW-Authenticate", `Bearer realm="heddle"`)
	text := why.Error()
	if token != nil && token.Fault == identity.Unknown { // a person has 16 sign-ins at most
		text += "; if you signed in: heddle login"
	}
	if joins(r.URL.Path) {
		text = "this is where people and tools are let in; hosts and controllers join at the address of --listen, " +
			"port 7411"
	}
	g.write(w, r, connect.NewError(connect.CodeUnauthenticated, text))
}

// joins reports whether a call is one by which a host or a controller joins.
func joins(path string) bool {
	return path == controllerv1connect.HostServiceJoinHostProcedure ||
		path == controllerv1connect.ControllerServiceJoinControllerProcedure
}

// Hold holds requests that are no calls against a call's rule, such as those for metrics.
func (g *Guard) Hold(procedure string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := Of(r.Context())
		if _, err := c.may(g.Rules.Of(procedure)); err != nil {
			g.refuseCaller(c, callOf(procedure), nil, err)
			g.write(w, r, connect.NewError(connect.CodePermissionDenied, err.Error()+explain))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Calls are how many there were since the start, by what became of them.
func (g *Guard) Calls() map[string]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := map[string]int64{}
	for r, n := range g.calls {
		by[string(r)] = n
	}
	return by
}

func (g *Guard) count(r audit.Result, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[r] += int64(n)
}

// refuseCaller records that a caller whom the controller knows may not make a call, at a bounded rate for each of them:
// they are told each time, and a line stands for those before it that have none.
func (g *Guard) refuseCaller(c Caller, call string, objects []string, why error) {
	e := c.entry(call, objects, roles.Grant{})
	if key := c.key(); key != "" {
		within, times := g.turned.of(key, g.Now())
		if !within {
			return
		}
		if times > 1 {
			e.Times = times
		}
	}
	g.refuse(e, why)
}

// refuse records a refusal. One that can't be recorded is a refusal all the same.
func (g *Guard) refuse(e audit.Entry, why error) {
	e.Error = why.Error()
	g.count(audit.Refused, max(1, e.Times))
	g.Log.Warn("refused", "who", e.Who, "token", e.Token, "from", e.From, "call", e.Call, "why", e.Error)
	if g.Audit == nil {
		return // a server that nobody calls but hosts
	}
	if err := g.Audit.Refuse(e); err != nil {
		g.Log.Error("the audit log can't be written", "err", err)
	}
}

// Joiner is a host or a controller that shows a token for joining.
type Joiner struct {
	From  string
	Token identity.TokenID
	// Call is what it asks for, Name under which name.
	Call, Name string
}

func (j Joiner) entry() audit.Entry {
	return audit.Entry{From: j.From, Token: string(j.Token), Call: j.Call, Objects: []string{"name=" + j.Name}}
}

// Join records that somebody is let in by a token, before it is. The caller calls done with what became of it.
func (g *Guard) Join(ctx context.Context, j Joiner) (done func(error), err error) {
	return g.begin(ctx, j.entry())
}

// NotJoined records that a token for joining did not count, in the audit log and in the controller's own, at a bounded
// rate.
func (g *Guard) NotJoined(j Joiner, why error) {
	within, times := g.throttle.failed(j.From, g.Now())
	if !within {
		return
	}
	e := j.entry()
	if times > 1 {
		e.Times = times
	}
	g.refuse(e, why)
}

// write answers with an error, in the protocol of the request.
func (g *Guard) write(w http.ResponseWriter, r *http.Request, err *connect.Error) {
	w.Header().Set(api.VersionHeader, strconv.Itoa(api.Version)) // for calls that are passed on to a host
	errors := connecthttp.NewErrorWriter()
	if errors.IsSupported(r) {
		_ = errors.Write(w, r, api.Detailed(err)) // a caller that went away needs no answer
		return
	}
	status := map[connect.Code]int{connect.CodeUnauthenticated: http.StatusUnauthorized,
		connect.CodePermissionDenied:  http.StatusForbidden,
		connect.CodeResourceExhausted: http.StatusTooManyRequests}[err.Code()]
	http.Error(w, err.Message(), status)
}

// enter takes in a request of a token: it ends with the token.
func (g *Guard) enter(ctx context.Context, r *pki.APIRecord, a *roles.Access) (context.Context, func()) {
	ctx, cut := context.WithCancelCause(ctx)
	v := &visit{r.ID, a, cut}
	g.mu.Lock()
	g.in[v] = struct{}{}
	g.mu.Unlock()
	if g.Token(r.ID) == nil { // it was withdrawn since it was looked at
		cut(&identity.TokenError{Fault: identity.Unknown, ID: r.ID})
	}
	over := time.AfterFunc(r.Expires.Sub(g.Now()), func() {
		cut(&identity.TokenError{Fault: identity.Expired, ID: r.ID})
	})
	return ctx, func() {
		over.Stop()
		g.mu.Lock()
		delete(g.in, v)
		g.mu.Unlock()
		cut(nil)
	}
}

// Recheck ends the requests of tokens that are withdrawn, and of those whose owners lost a permission.
func (g *Guard) Recheck() {
	book := g.book()
	g.mu.Lock()
	defer g.mu.Unlock()
	for v := range g.in {
		r := g.Token(v.token)
		if r == nil {
			v.cut(&identity.TokenError{Fault: identity.Unknown, ID: v.token})
			continue
		}
		if _, now := book.Of(r); !now.Covers(v.access) {
			v.cut(&identity.TokenError{Fault: identity.NotAllowed, ID: v.token,
				Err: errors.New("a permission of its owner was withdrawn meanwhile: call again for what is left")})
		}
	}
}

func callOf(procedure string) string { return procedure[strings.LastIndexByte(procedure, '/')+1:] }
