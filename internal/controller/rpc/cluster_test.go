package rpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/api/heddle/controller/v1/controllerv1connect"
	"heddle/cmd/heddle-controller/features"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/state"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/host/keystore"
	"heddle/internal/identity"
	"heddle/internal/platform/audit"
	"heddle/internal/platform/peers"
	"heddle/internal/platform/pki"
	"heddle/internal/platform/serve"
	"heddle/internal/platform/store"
)

// patience is how long a condition may take; no test waits that long when all is well.
const patience = 2 * time.Minute

// clusterText is what the clusters of these tests define: hosts have the switch dvs by their label.
const clusterText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups: [{name: web, vlan: {access: 10}}, {name: db, vlan: {access: 20}}]
- name: other
  portGroups: [{name: secret}]
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
`

// controller is one under test, with real TLS on the loopback.
type controller struct {
	*Server
	t         *testing.T
	id        string
	authority *pki.Authority
	disk      *store.Store
	log       *lines
	listener  *serve.Listener
	address   string
	auditDir  string
	later     atomic.Int64 // how much time has passed
	wrong     atomic.Int64 // how far its clock is ahead of that
	creds     atomic.Pointer[identity.Credentials]
}

// lines is a log that tests read.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// count is how many lines have all of these.
func (l *lines) count(parts ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(line, p) }) {
			n++
		}
	}
	return n
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func (c *controller) now() time.Time { return c.right().Add(time.Duration(c.wrong.Load())) }

// right is what a clock shows that is right.
func (c *controller) right() time.Time { return time.Now().Add(time.Duration(c.later.Load())) }

// set puts the controller's clock ahead, and has it make itself another certificate.
func (c *controller) set(ahead time.Duration) {
	c.t.Helper()
	c.wrong.Store(int64(ahead))
	c.pass(0)
}

// pass lets time pass at the controller, which makes itself another certificate meanwhile.
func (c *controller) pass(d time.Duration) {
	c.t.Helper()
	c.later.Add(int64(d))
	key := must(identity.NewKey())(c.t)
	csr := must(key.Request())(c.t)
	issued := must(c.authority.IssueController(csr, pki.Subject{ID: c.id}, c.now()))(c.t)
	c.creds.Store(c.authority.Serving(issued.Certificate, key))
}

func newAuthority(t *testing.T) *pki.Authority {
	t.Helper()
	secret := pki.NewSecret()
	return must(must(pki.New("test", secret, time.Now()))(t).Open(secret))(t)
}

// openStore opens a store with an etcd of its own, which may take its time: no test waits for it to give up.
func openStore(t *testing.T) *store.Store {
	t.Helper()
	st := must(store.Open(t.Context(), store.Options{Dir: t.TempDir(), Fast: true, Timeout: patience}))(t)
	t.Cleanup(st.Close)
	return st
}

// newController is one with an etcd of its own.
func newController(t *testing.T) *controller {
	t.Helper()
	st := openStore(t)
	return controllerOn(t, "c1", newAuthority(t), st)
}

// controllerOn is one on a store that others may use too.
func controllerOn(t *testing.T, id string, authority *pki.Authority, st *store.Store) *controller {
	t.Helper()
	c := &controller{t: t, id: id, authority: authority, disk: st, log: &lines{}}
	c.pass(0)
	c.auditDir = filepath.Join(t.TempDir(), "audit")
	record := must(audit.Open(c.auditDir, audit.DefaultBounds(), c.now))(t)
	t.Cleanup(func() { _ = record.Close() })
	c.Server = must(New(Options{Audit: record, Store: st, Past: store.PastOf(st), KeepHistory: history.DefaultKeep(),
		Authority: pki.NewCurrent(c.authority), Epoch: 1,
		Capabilities: features.List(),
		SpreadTime:   time.Hour, // hosts stay where a test has them
		Log:          slog.New(slog.NewTextHandler(c.log, nil)),
		Steady:       func() time.Duration { return time.Since(clockBegan) + time.Duration(c.later.Load()) },
		TLS: pki.Server{Own: func() (*identity.Credentials, error) { return c.creds.Load(), nil },
			Now: c.now}}))(t)
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	c.address = l.Addr().String()
	must(again(t, func() (any, error) {
		return nil, c.Announce(t.Context(), peers.Controller{ID: id, Name: id, Address: c.address,
			Kinds: strings.Join(inventory.KindNames(), " ")})
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	srv := c.HTTP(c.Hosts())
	c.listener = serve.NewListener(l, c.TLS.TLS(), c.refused, serve.Bounds{Waiting: 500})
	var g sync.WaitGroup
	g.Go(func() { c.Run(ctx) })
	g.Go(func() {
		if err := srv.Serve(c.listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		g.Wait()
	})
	return c
}

// again asks for a change that may be asked for twice, and asks again while etcd takes none, as one on a busy machine
// does now and then.
func again[T any](t *testing.T, ask func() (T, error)) (T, error) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		v, err := ask()
		if err == nil || !strings.Contains(err.Error(), "the cluster's state can't be written now") ||
			time.Now().After(end) {
			return v, err
		}
		t.Logf("asked again: %v", err)
	}
}

// define makes a text the definition.
func (c *controller) define(text string) {
	c.t.Helper()
	must(again(c.t, func() (*controllerv1.ApplyDefinitionResponse, error) {
		return people{c.Server}.ApplyDefinition(c.t.Context(), &controllerv1.ApplyDefinitionRequest{Content: text,
			Force: true})
	}))(c.t)
}

// token is one for joining.
func (c *controller) token() string {
	c.t.Helper()
	return c.tokenOf(map[string]string{"rack": "a"})
}

func (c *controller) tokenOf(labels map[string]string) string {
	c.t.Helper()
	return must(again(c.t, func() (*controllerv1.CreateJoinTokenResponse, error) {
		return people{c.Server}.CreateJoinToken(c.t.Context(), &controllerv1.CreateJoinTokenRequest{Labels: labels})
	}))(c.t).GetToken()
}

// await waits for a condition.
func (c *controller) await(what string, is func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("%s does not come to pass; the log:\n%s", what, c.log.text.String())
		}
	}
}

// shown is a host as it is listed.
func (c *controller) shown(name string) *controllerv1.Host {
	c.t.Helper()
	for _, h := range must(people{c.Server}.ListHosts(c.t.Context(), nil))(c.t).GetHosts() {
		if h.GetName() == name {
			return h
		}
	}
	return nil
}

func (c *controller) state(name string) controllerv1.HostState { return c.shown(name).GetState() }

// ports are those that are listed, as HOST SWITCH/GROUP NAME.
func (c *controller) ports() (names []string) {
	c.t.Helper()
	for _, p := range must(people{c.Server}.ListFleetPorts(c.t.Context(), nil))(c.t).GetPorts() {
		names = append(names, p.GetHost()+" "+p.GetSwitch()+"/"+p.GetPortGroup()+" "+p.GetName())
	}
	return names
}

// machine is a stand-in for a host's agent, with the real client.
type machine struct {
	c      *controller
	dir    string
	record *cluster.Record
	client *cluster.Client

	mu     sync.Mutex
	given  *state.Slice
	report *controllerv1.HostReport
	said   []string     // what became of the conversation, in words
	calls  http.Handler // nil for none
	// before: its agent is of a version that does not know whose port a call about a move means.
	before bool
	// refuses says why nothing is activated; taken counts what was to be.
	refuses []string
	taken   int
	stop    func()
	// unready says why nothing can be prepared; asked is called when something is to be. activeAt is when it had
	// what it has, by clock, which is ahead by that of the test's.
	unready  []string
	asked    func()
	activeAt int64
	ahead    time.Duration
	at       string        // the controller that it goes to alone; "" for whichever
	begun    uint64        // the number of its start
	wrong    time.Duration // how far its clock is ahead
	moves    *controllerv1.HostMoves
	flapping *controllerv1.HostFlapping
}

// Given is what the machine has active.
func (m *machine) Given(context.Context) (*state.Slice, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.given, nil
}

// Take activates at once, or at the instant.
func (m *machine) Take(_ context.Context, next *state.Slice) ([]string, error) {
	if next.NotBefore > 0 {
		time.Sleep(time.Duration(next.NotBefore - m.clock()))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken++
	if len(m.refuses) > 0 {
		return m.refuses, nil
	}
	m.given, m.activeAt = next.Noting(m.given), m.clock()
	if m.given.Together != "" {
		m.given = m.given.Noted(m.activeAt)
	}
	return nil, nil
}

var clockBegan = time.Now()

// now is the machine's clock: it is right, unless the test has set it.
func (m *machine) now() time.Time { return m.c.right().Add(m.wrong) }

func (m *machine) clock() int64 { return int64(time.Since(clockBegan) + m.ahead) }

// Clock is one that nobody sets.
func (m *machine) Clock() (int64, error) { return m.clock(), nil }

// Prepare does what the test says.
func (m *machine) Prepare(context.Context, string, *state.Slice) ([]string, error) {
	m.mu.Lock()
	unready, asked := m.unready, m.asked
	m.mu.Unlock()
	if asked != nil {
		asked()
	}
	return unready, nil
}

// ActiveAt is when it took what it has.
func (m *machine) ActiveAt(context.Context) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.activeAt, nil
}

// Report is what the test says.
func (m *machine) Report(context.Context) (*controllerv1.HostReport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report, nil
}

// heard reports whether the conversation ended for a reason with these words.
func (m *machine) heard(parts ...string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.said, func(s string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
	})
}

// lost is how often there was no controller.
func (m *machine) lost() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.said)
}

// joins is a machine that joins under a name.
func (c *controller) joins(name string) *machine {
	c.t.Helper()
	m := &machine{c: c, dir: c.t.TempDir(), report: &controllerv1.HostReport{}}
	m.join(name, c.token(), false)
	return m
}

func (m *machine) join(name, token string, replace bool) {
	m.c.t.Helper()
	m.record = must(again(m.c.t, func() (*cluster.Record, error) { // with the same token, as its error says
		return cluster.Join(m.c.t.Context(), m.dir, cluster.Request{Controller: m.c.address, Token: token, Name: name,
			Replace: replace})
	}))(m.c.t)
}

// pinned is a host's record with one controller alone.
type pinned struct {
	*cluster.Record
	at string
}

// Controllers are the addresses to try.
func (p pinned) Controllers() []string {
	if p.at != "" {
		return []string{p.at}
	}
	return p.Record.Controllers()
}

// start begins the conversation; it ends with the test.
func (m *machine) start() *machine {
	ctx, cancel := context.WithCancel(context.Background())
	m.client = cluster.New(cluster.Options{Host: m, Together: m, Membership: pinned{m.record, m.at}, Version: "test",
		Begun: m.begun, Calls: m.calls, Moves: m, Log: slog.New(slog.DiscardHandler), Now: m.now,
		ChecksMeant: !m.before,
		Connected: func(_ string, err error) {
			if err != nil {
				m.mu.Lock()
				m.said = append(m.said, err.Error())
				m.c.t.Log(m.record.Name(), "has no controller:", err)
				m.mu.Unlock()
			}
		}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.client.Run(ctx)
	}()
	m.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	m.c.t.Cleanup(m.stop)
	return m
}

// up is a machine that has joined and is connected with the newest definition.
func (c *controller) up(name string) *machine {
	c.t.Helper()
	m := c.joins(name).start()
	c.await(name+" is up", func() bool { return c.state(name) == controllerv1.HostState_HOST_STATE_UP })
	return m
}

// call is a client with some TLS.
func (c *controller) call(conf *tls.Config) controllerv1connect.HostServiceClient {
	protocols := &http.Protocols{}
	protocols.SetHTTP2(true)
	transport := &http.Transport{TLSClientConfig: conf, Protocols: protocols}
	c.t.Cleanup(transport.CloseIdleConnections)
	return controllerv1connect.NewHostServiceClient(connect.NewClient(connecthttp.NewTransport(
		&http.Client{Transport: transport}, "https://"+c.address, connecthttp.WithCompressors())))
}

// keyOf is the key that a machine asks for its next certificate with.
func (m *machine) keyOf() identity.Key {
	m.c.t.Helper()
	return must(must(keystore.Open(filepath.Join(m.dir, "identity")))(m.c.t).NextKey())(m.c.t)
}
