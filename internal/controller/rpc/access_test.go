package rpc

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"google.golang.org/protobuf/types/known/durationpb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/internal/identity"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/serve"
)

// front is a controller that answers people over TLS.
type front struct {
	*controller
	listener *serve.Listener
	address  string
	auditAt  string
}

// answersPeople lets a controller answer people.
func answersPeople(t *testing.T) *front {
	t.Helper()
	return answersAt(t, newController(t))
}

// answersAt has a controller answer people.
func answersAt(t *testing.T, c *controller) *front {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	f := &front{controller: c, listener: serve.NewListener(l, c.TLS.PeopleTLS(), c.refused, serve.Bounds{}),
		address: l.Addr().String(),
		auditAt: c.auditDir}
	srv := Front{c.Server}.APIServer()
	var g sync.WaitGroup
	g.Go(func() {
		if err := srv.Serve(f.listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		g.Wait()
	})
	return f
}

// person is somebody with a token.
type person struct {
	controllerv1connect.FleetServiceClient
	access controllerv1connect.AccessServiceClient
	status controllerv1connect.StatusServiceClient
	http   *http.Client
	token  string
}

func (f *front) trusting() *tls.Config {
	return identity.PinnedTLS(f.authority.Fingerprint(), identity.NewClock(time.Now))
}

type shows struct {
	http.RoundTripper
	header string
}

func (s shows) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if s.header != "" {
		r.Header.Set("Authorization", s.header)
	}
	return s.RoundTripper.RoundTrip(r)
}

func (f *front) with(header string) *person { return f.by(header, f.trusting()) }

func (f *front) by(header string, conf *tls.Config) *person {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	protocols.SetHTTP1(true)
	transport := &http.Transport{TLSClientConfig: conf, Protocols: protocols}
	f.t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: shows{transport, header}}
	rpc := connect.NewClient(connecthttp.NewTransport(client, "https://"+f.address, connecthttp.WithCompressors()))
	return &person{controllerv1connect.NewFleetServiceClient(rpc), controllerv1connect.NewAccessServiceClient(rpc),
		controllerv1connect.NewStatusServiceClient(rpc),
		client, strings.TrimPrefix(header, "Bearer ")}
}

// made is a token of a role.
func (f *front) made(name string, role controllerv1.AccessRole,
	life time.Duration) *controllerv1.CreateAPITokenResponse {
	f.t.Helper()
	return must(deskOf(f.Server).CreateAPIToken(f.t.Context(), &controllerv1.CreateAPITokenRequest{Name: name,
		Role: role, Lasts: durationpb.New(life)}))(f.t)
}

func (f *front) viewer() *person {
	f.t.Helper()
	return f.with("Bearer " + f.made("val", controllerv1.AccessRole_ACCESS_ROLE_VIEWER, day).GetToken())
}

func (f *front) admin() *person {
	f.t.Helper()
	return f.with("Bearer " + f.made("ada", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day).GetToken())
}

func (p *person) lists(t *testing.T) error {
	_, err := p.ListHosts(t.Context(), &controllerv1.ListHostsRequest{})
	return err
}

// audited are the entries of the log in short.
func (f *front) audited() (lines []string) {
	f.t.Helper()
	list := must(deskOf(f.Server).ListAudit(f.t.Context(), &controllerv1.ListAuditRequest{Most: 10_000}))(f.t)
	for _, e := range list.GetEntries() {
		lines = append(lines, fmt.Sprintf("%s %s %s [%s] %s", e.GetWho(), e.GetCall(),
			strings.TrimPrefix(e.GetResult().String(), "AUDIT_RESULT_"), strings.Join(e.GetObjects(), " "),
			e.GetError()))
	}
	return lines
}

func has(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q: %s", what, p, text)
		}
	}
}

// Each role may do what it is for; who is refused is told which role it takes; all of it is recorded in order.
func TestAccess_RolesAndTheirRecord(t *testing.T) {
	f := answersPeople(t)
	viewer := f.viewer()
	operator := f.with("bearer " + f.made("oli", controllerv1.AccessRole_ACCESS_ROLE_OPERATOR, day).GetToken())
	admin := f.admin()
	for _, p := range []*person{viewer, operator, admin} {
		if err := p.lists(t); err != nil {
			t.Error(err)
		}
	}
	for _, p := range []*person{viewer, operator} {
		_, err := p.CreateJoinToken(t.Context(), &controllerv1.CreateJoinTokenRequest{
			Labels: map[string]string{"rack": "a"}})
		if connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("it makes a join token: %v", err)
		} else {
			has(t, "the refusal", err.Error(), "this needs admin")
		}
		if _, err := p.access.ListAudit(t.Context(), nil); connect.CodeOf(err) != connect.CodePermissionDenied {
			t.Errorf("it reads the audit log: %v", err)
		}
	}
	must(admin.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{File: "f.yaml",
		Content: clusterText}))(t)
	_, err := admin.RemoveHost(t.Context(), &controllerv1.RemoveHostRequest{Name: "esx9"})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Error(err)
	}
	got := f.audited()
	want := []string{"val CreateJoinToken REFUSED [labels=rack:a] ", "val ListAudit REFUSED [] ",
		"oli CreateJoinToken REFUSED [labels=rack:a] ", "oli ListAudit REFUSED [] ",
		"ada ApplyDefinition DONE [file=f.yaml content=", "ada RemoveHost FAILED [name=esx9] the cluster has no host"}
	if len(got) != len(want) {
		t.Fatalf("recorded\n%s", strings.Join(got, "\n"))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("entry %d is %s", i, got[i])
		}
	}
	has(t, "the change", got[4], "switch dvs added", "revision ")
	for _, line := range f.audited() {
		if strings.Contains(line, "secret") == (line != got[4]) {
			t.Error(line) // the file's own text is told by its length; its objects are named
		}
	}
}

// Tokens that do not count are refused with a word about why; none of them is in a log.
func TestAccess_TokensThatDoNotCount(t *testing.T) {
	f := answersPeople(t)
	expired := f.made("old", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, time.Hour)
	revoked := f.made("gone", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, 10*day)
	good := f.made("ann", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, 10*day)
	f.pass(2 * time.Hour)
	must(deskOf(f.Server).RevokeAPIToken(t.Context(), &controllerv1.RevokeAPITokenRequest{Id: revoked.GetId()}))(t)
	other := identity.NewAPIToken()
	guess := other.Text()
	// One with the name of a good token and another secret, as who has read a list of tokens might try.
	forged := other
	forged.ID = identity.TokenID(good.GetId())
	for name, c := range map[string]struct{ header, want string }{
		"none":        {"", "this needs a token"},
		"basic":       {"Basic YWRtaW46YWRtaW4=", "this needs a token"},
		"empty":       {"Bearer ", "mistyped"},
		"mistyped":    {"Bearer " + good.GetToken()[:len(good.GetToken())-1], "mistyped"},
		"join token":  {"Bearer " + f.token(), "it is a token for a host to join"},
		"unknown":     {"Bearer " + guess, "is unknown to this cluster"},
		"forged":      {"Bearer " + forged.Text(), "is unknown to this cluster"},
		"expired":     {"Bearer " + expired.GetToken(), "has expired"},
		"revoked":     {"Bearer " + revoked.GetToken(), "is unknown to this cluster"},
		"long header": {"Bearer " + strings.Repeat("a", 9000), "mistyped"},
	} {
		t.Run(name, func(t *testing.T) {
			err := f.with(c.header).lists(t)
			if connect.CodeOf(err) != connect.CodeUnauthenticated {
				t.Fatalf("answered: %v", err)
			}
			has(t, "the refusal", err.Error(), c.want)
		})
	}
	if err := f.with("Bearer " + good.GetToken()).lists(t); err != nil {
		t.Errorf("one that counts: %v", err)
	}
	files := must(filepath.Glob(filepath.Join(f.auditAt, "*")))(t)
	text := f.log.text.String()
	for _, name := range files {
		text += string(must(os.ReadFile(name))(t))
	}
	for _, token := range []string{good.GetToken(), expired.GetToken(), revoked.GetToken(), guess} {
		if secret := token[strings.LastIndexByte(token, '.')+1:]; strings.Contains(text, secret) {
			t.Error("a secret is in a log")
		}
	}
	if n := len(f.audited()); n != 10 {
		t.Errorf("%d refusals are recorded:\n%s", n, strings.Join(f.audited(), "\n"))
	}
}

// Who guesses is refused at a bounded rate and recorded in a bounded number of lines; the right token is taken all the
// while.
func TestAccess_GuessedTokens(t *testing.T) {
	f := answersPeople(t)
	viewer := f.viewer()
	codes := map[connect.Code]int{}
	const guesses = 200
	for range guesses {
		codes[connect.CodeOf(f.with("Bearer "+identity.NewAPIToken().Text()).lists(t))]++
	}
	if codes[connect.CodeUnauthenticated] > 20 || codes[connect.CodeResourceExhausted] < 150 {
		t.Errorf("answers %v", codes)
	}
	if err := viewer.lists(t); err != nil {
		t.Errorf("the right token: %v", err)
	}
	if n := len(f.audited()); n > 20 {
		t.Errorf("%d lines are recorded", n)
	}
	f.later.Add(int64(time.Minute))
	if err := f.with("Bearer " + identity.NewAPIToken().Text()).lists(t); connect.CodeOf(err) !=
		connect.CodeUnauthenticated {
		t.Error(err)
	}
	list := must(deskOf(f.Server).ListAudit(t.Context(), &controllerv1.ListAuditRequest{}))(t).GetEntries()
	var refused int64
	for _, e := range list {
		refused += max(1, int64(e.GetTimes()))
	}
	if refused != guesses+1 || len(list) > 20 {
		t.Errorf("a minute later %d entries tell of %d refusals", len(list), refused)
	}
}

// The other side's certificate decides before a token is sent, and a certificate of a host is no token.
func TestAccess_Certificates(t *testing.T) {
	f := answersPeople(t)
	token := "Bearer " + f.made("ann", controllerv1.AccessRole_ACCESS_ROLE_ADMIN, day).GetToken()
	before := len(f.audited())
	stranger := newAuthority(t)
	for name, conf := range map[string]*tls.Config{
		"of another cluster": identity.PinnedTLS(stranger.Fingerprint(), identity.NewClock(time.Now)),
		"after its end": identity.PinnedTLS(f.authority.Fingerprint(),
			identity.Clock{Now: func() time.Time { return time.Now().Add(200 * day) }}),
		"TLS 1.2": {InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12},
	} {
		t.Run(name, func(t *testing.T) {
			if err := f.by(token, conf).lists(t); connect.CodeOf(err) != connect.CodeUnavailable {
				t.Errorf("it is asked: %v", err)
			}
		})
	}
	f.define(clusterText)
	m := f.joins("esx1")
	if err := f.by("", must(m.record.TLS())(t)).lists(t); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("a host is answered without a token: %v", err)
	}
	if n := len(f.audited()); n != before+2 { // the join of the host, and the refusal
		t.Errorf("refused %d times: %v", n-before, f.audited())
	}
	resp, err := http.Get("http://" + f.address + "/")
	if err == nil {
		_ = resp.Body.Close()
		t.Errorf("without TLS it answers %s", resp.Status)
	}
}

// Requests are bounded in size, for who may change nothing far below a definition's.
func TestAccess_OversizedRequests(t *testing.T) {
	f := answersPeople(t)
	viewer, admin := f.viewer(), f.admin()
	huge := strings.Repeat("#", maxAsked+1)
	for name, c := range map[string]struct {
		p    *person
		size int
		want connect.Code
	}{
		"an admin's": {admin, maxAsked + 1, connect.CodeResourceExhausted},
		"a viewer's": {viewer, 1 << 20, connect.CodePermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.p.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{Content: huge[:c.size]})
			if connect.CodeOf(err) != c.want {
				t.Errorf("%d bytes: %v", c.size, err)
			}
		})
	}
	q := must(http.NewRequest(http.MethodPost, "https://"+f.address+
		"/heddle.controller.v1.FleetService/ListHosts", bytes.NewReader(make([]byte, 1<<20))))(t)
	q.Header.Set("Content-Type", "application/proto")
	resp := must(viewer.http.Do(q))(t)
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		t.Error("a megabyte of a reading call is read")
	}
	q = must(http.NewRequest(http.MethodPost, "https://"+f.address+"/heddle.controller.v1.FleetService/ListHosts",
		strings.NewReader("{}")))(t)
	q.Header.Set("X-Long", strings.Repeat("a", 64<<10))
	if resp, err := viewer.http.Do(q); err == nil {
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("64 KB of header: %s", resp.Status)
		}
	}
}

// A request that does not come to its end is ended, and holds nobody up.
func TestAccess_SlowRequests(t *testing.T) {
	f := answersPeople(t)
	viewer := f.viewer()
	f.guard.ReadTime = 100 * time.Millisecond
	conf := f.trusting()
	conf.NextProtos = []string{"http/1.1"}
	c := must(tls.Dial("tcp", f.address, conf))(t)
	defer c.Close()
	_, err := fmt.Fprintf(c, "POST /heddle.controller.v1.FleetService/ListHosts HTTP/1.1\r\nHost: c\r\n"+
		"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", viewer.token)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		if resp.StatusCode == http.StatusOK || err != nil {
			t.Errorf("answered %s, %v", resp.Status, err)
		}
	}
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		t.Error("the controller waits on")
	}
	if err := viewer.lists(t); err != nil {
		t.Errorf("somebody else: %v", err)
	}
}

// Connections without a token are bounded, and push nobody out who has shown one.
func TestAccess_IdleConnections(t *testing.T) {
	f := answersPeople(t)
	viewer := f.viewer()
	if err := viewer.lists(t); err != nil {
		t.Fatal(err)
	}
	f.await("it is known", func() bool { held := f.listener.Held(); return held.Known == 1 && held.Guests == 0 })
	var idle []net.Conn
	t.Cleanup(func() {
		for _, c := range idle {
			_ = c.Close()
		}
	})
	for range 256 + 20 {
		idle = append(idle, must(tls.Dial("tcp", f.address, f.trusting()))(t))
	}
	f.await("the oldest are ended", func() bool { return f.listener.Held().Guests <= 256 })
	if err := viewer.lists(t); err != nil {
		t.Fatal(err)
	}
	if n := f.listener.Held().Known; n != 1 {
		t.Errorf("%d connections are known: the one before was ended", n)
	}
}

// Where nothing can be recorded nothing is changed; reading goes on.
func TestAccess_NothingIsChangedUnrecorded(t *testing.T) {
	f := answersPeople(t)
	admin := f.admin()
	if err := os.RemoveAll(f.auditAt); err != nil {
		t.Fatal(err)
	}
	_, err := admin.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{Content: clusterText})
	if connect.CodeOf(err) != connect.CodeUnavailable {
		t.Fatalf("it is changed: %v", err)
	}
	has(t, "the error", err.Error(), "audit log", "nothing is changed")
	if d := must(admin.GetDefinition(context.Background(), &controllerv1.GetDefinitionRequest{}))(t); strings.Contains(
		d.GetContent(), "dvs") {
		t.Error("the definition was changed")
	}
}

// Who joins by a token is recorded, and so are tokens that do not count, at a bounded rate.
func TestAccess_JoiningIsRecorded(t *testing.T) {
	f := answersPeople(t)
	f.define(clusterText)
	f.joins("esx1")
	m := &machine{c: f.controller, dir: t.TempDir(), report: &controllerv1.HostReport{}}
	for range 40 {
		guess := identity.NewJoinToken(f.authority.Fingerprint())
		if _, err := m.ask("esx2", guess.Text()); err == nil {
			t.Fatal("a guessed token lets a host in")
		}
	}
	got := f.audited()
	if got[0] != " JoinHost DONE [name=esx1] " || len(got) < 2 || len(got) > 20 {
		t.Errorf("recorded\n%s", strings.Join(got, "\n"))
	}
	has(t, "a refusal", got[1], "JoinHost REFUSED [name=esx2]", "is unknown to this cluster")
}

// The audit log of a controller is checked line by line; what somebody has changed in a file is named.
func TestS104_AnAuditLogThatWasChangedIsFound(t *testing.T) {
	c := newController(t)
	log := must(audit.Open(filepath.Join(t.TempDir(), "audit"), audit.DefaultBounds(), c.now))(t)
	c.auditing.Audit = log
	for range 3 {
		if err := log.Refuse(audit.Entry{Who: "eve", Call: "RemoveHost"}); err != nil {
			t.Fatal(err)
		}
	}
	refusals := func(head string) *controllerv1.AuditChain {
		t.Helper()
		out := must(deskOf(c.Server).VerifyAudit(t.Context(), &controllerv1.VerifyAuditRequest{Head: head}))(t)
		if len(out.GetChains()) != 3 || out.GetChains()[1].GetSeries() != "refusals" {
			t.Fatalf("the logs: %v", out)
		}
		return out.GetChains()[1]
	}
	whole := refusals("")
	if whole.GetLines() != 3 || len(whole.GetFaults()) > 0 || whole.GetHead() == "" || whole.GetKnown() {
		t.Errorf("as it was written: %v", whole)
	}
	if !refusals(whole.GetHead()).GetKnown() {
		t.Error("the head that was noted is unknown")
	}
	files := must(filepath.Glob(filepath.Join(log.Dir(), "refusals-*.jsonl")))(t)
	text := must(os.ReadFile(files[0]))(t)
	if err := os.WriteFile(files[0], bytes.Replace(text, []byte("eve"), []byte("ann"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed := refusals(""); len(changed.GetFaults()) == 0 {
		t.Errorf("with another name in the first line: %v", changed)
	}
}
