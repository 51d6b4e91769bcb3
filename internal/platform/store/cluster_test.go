package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/certs"
)

// peerFiles are the files of the mutual TLS between members.
func peerFiles(t *testing.T) Peers {
	t.Helper()
	ca := certs.New(t, "test")
	pair := ca.Issue("heddle.test", time.Hour)
	p := Peers{ServerName: "heddle.test"}
	dir := t.TempDir()
	for name, f := range map[string]struct {
		path *string
		text []byte
	}{"cert.pem": {&p.Cert, pair.Cert}, "key.pem": {&p.Key, pair.Key}, "ca.pem": {&p.CA, ca.PEM()}} {
		*f.path = filepath.Join(dir, name)
		if err := os.WriteFile(*f.path, f.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// freeURL is a URL that nobody listens at.
func freeURL(t *testing.T) string {
	t.Helper()
	return "https://" + testkit.Unused(t)
}

// members are the embedded members of one cluster.
type members struct {
	options []Options
	stores  []*Store
}

func newMembers(t *testing.T, n int) *members {
	t.Helper()
	m := &members{stores: make([]*Store, n)}
	files := peerFiles(t)
	var list []string
	for i := range n {
		p := files
		p.Listen = []string{freeURL(t)}
		list = append(list, fmt.Sprintf("m%d=%s", i, p.Listen[0]))
		m.options = append(m.options, Options{Dir: t.TempDir(), Name: fmt.Sprint("m", i), Peers: &p, Fast: true,
			Log: testLog(t), Timeout: time.Second})
	}
	for i := range n {
		m.options[i].Peers.Members = list
	}
	m.start(t, 0, 1, 2)
	t.Cleanup(func() { m.stop(0, 1, 2) })
	return m
}

// start starts members, together: none is ready before there is a quorum.
func (m *members) start(t *testing.T, which ...int) {
	t.Helper()
	var all sync.WaitGroup
	for _, i := range which {
		all.Go(func() {
			s, err := Open(patient(t), m.options[i])
			if err != nil {
				t.Error(err)
			}
			m.stores[i] = s
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
}

func (m *members) stop(which ...int) {
	for _, i := range which {
		if m.stores[i] != nil {
			m.stores[i].Close()
			m.stores[i] = nil
		}
	}
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not: ", what)
		}
	}
}

// retry writes until a write is taken, as somebody would whose cluster elects a leader.
func retry(t *testing.T, s *Store, changes ...Change) int64 {
	t.Helper()
	for {
		rev, err := s.Write(patient(t), changes)
		var u *Unavailable
		if !errors.As(err, &u) {
			if err != nil {
				t.Fatal(err)
			}
			return rev
		}
	}
}

func TestThreeMembers(t *testing.T) {
	testkit.Long(t, "starts and ends three members in many ways; TestOneMemberBecomesTwo has two")
	t.Parallel()
	m := newMembers(t, 3)
	t.Run("status", m.testStatus)
	t.Run("strangers", m.testStrangers)
	t.Run("a member restarts", m.testRestart)
	t.Run("defragmentation", m.testDefragmentation)
	t.Run("no quorum", m.testNoQuorum)
	t.Run("two lost for good", m.testForceNewCluster)
}

func (m *members) testStatus(t *testing.T) {
	var id string
	for i, s := range m.stores {
		eventually(t, "there is a leader", func() bool {
			st, err := s.Status(patient(t))
			return err == nil && st.Leader != 0
		})
		st, err := s.Status(patient(t))
		if err != nil || len(st.Members) != 3 || st.Stale != "" || !st.Embedded || id != "" && st.ID != id {
			t.Errorf("member %d: %+v, %v", i, st, err)
		}
		id = st.ID
		leaders := 0
		for j, member := range st.Members {
			if member.Leader {
				leaders++
			}
			self := i == j
			if member.Name != fmt.Sprint("m", j) || member.Self != self || (member.Health != nil) != self {
				t.Errorf("member %d says of %d: %+v", i, j, member)
			}
		}
		if leaders != 1 {
			t.Errorf("member %d knows %d leaders", i, leaders)
		}
	}
}

// Nothing listens for clients, and the listener for peers answers nobody without a certificate of the cluster.
func (m *members) testStrangers(t *testing.T) {
	if n := len(m.stores[0].etcd.Clients); n > 0 {
		t.Errorf("%d listeners for clients", n)
	}
	foreign, err := tls.X509KeyPair(func() ([]byte, []byte) {
		p := certs.New(t, "other").Issue("heddle.test", time.Hour)
		return p.Cert, p.Key
	}())
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(m.options[0].Peers.Cert, m.options[0].Peers.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		with []tls.Certificate
		ok   bool
	}{{"no certificate", nil, false}, {"a foreign one", []tls.Certificate{foreign}, false},
		{"the cluster's", []tls.Certificate{own}, true}} {
		t.Run(c.name, func(t *testing.T) {
			transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: c.with, InsecureSkipVerify: true}}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport, Timeout: patience}
			resp, err := client.Get(m.options[0].Peers.Listen[0] + "/version")
			if (err == nil) != c.ok {
				t.Errorf("answered %v, %v", resp, err)
			}
			if err == nil {
				resp.Body.Close()
			}
		})
	}
}

// A watch goes on over the restart of its store's peers, and what a member missed it has after its own.
func (m *members) testRestart(t *testing.T) {
	f := &follower{t: t}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watch := m.stores[0].Watch(ctx, 0)
	for round := range 2 {
		gone := 1 + round
		m.stop(gone)
		for i := range 20 {
			retry(t, m.stores[0], put(KindHost, fmt.Sprint("h", i), fmt.Sprint(round), Any))
		}
		m.start(t, gone)
		rev := retry(t, m.stores[gone], put(KindHost, "back", fmt.Sprint(round), Any))
		f.until(patient(t), watch, rev)
		if diff := cmp.Diff(docsOf(m.stores[gone]), f.docs); diff != "" || f.resets != 1 {
			t.Errorf("%d resets: %s", f.resets, diff)
		}
	}
}

// The leader hands over before it defragments.
func (m *members) testDefragmentation(t *testing.T) {
	leader := -1
	eventually(t, "one leads", func() bool {
		for i, s := range m.stores {
			if s.etcd.Server.MemberID() == s.etcd.Server.Leader() {
				leader = i
			}
		}
		return leader >= 0
	})
	s := m.stores[leader]
	if err := s.keeper.defragment(patient(t), 0, 0); err != nil {
		t.Fatal(err)
	}
	if s.etcd.Server.MemberID() == s.etcd.Server.Leader() {
		t.Error("it still leads")
	}
	retry(t, s, put(KindHost, "defragmented", `1`, Any))
}

// Without a quorum reads go on, marked as stale; a write fails, with an error that says so. Nothing is lost by it.
func (m *members) testNoQuorum(t *testing.T) {
	s := m.stores[0]
	retry(t, s, put(KindHost, "kept", `1`, Any))
	m.stop(1, 2)
	eventually(t, "reads are marked as stale", func() bool { return s.Stale() != nil })
	if o, ok := s.Get(Key{KindHost, "kept"}); !ok || string(o.Doc) != `1` {
		t.Errorf("read %+v, %v", o, ok)
	}
	var u *Unavailable
	if _, err := s.Write(t.Context(), []Change{put(KindHost, "maybe", `1`, Any)}); !errors.As(err, &u) {
		t.Errorf("a write without a quorum: %v", err)
	}
	if err := s.Sync(t.Context()); !errors.As(err, &u) {
		t.Errorf("a sync without a quorum: %v", err)
	}
	st, err := s.Status(t.Context())
	if st.Stale == "" || len(st.Members) != 3 {
		t.Errorf("status: %+v, %v", st, err)
	}
	var attempts atomic.Int64
	written := make(chan error, 1)
	go func() {
		written <- Patiently(patient(t), s, "start", func(ctx context.Context) error {
			attempts.Add(1)
			_, err := s.Write(ctx, []Change{put(KindHost, "patiently", `1`, Any)})
			return err
		})
	}()
	eventually(t, "a patient write is tried again", func() bool { return attempts.Load() > 1 })
	m.start(t, 1, 2)
	if err := <-written; err != nil {
		t.Errorf("a patient write, after there is a quorum: %v", err)
	}
	retry(t, s, put(KindHost, "after", `1`, Any))
	eventually(t, "reads are current", func() bool { return s.Stale() == nil })
	if err := m.stores[1].Sync(patient(t)); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.stores[1].Get(Key{KindHost, "kept"}); !ok {
		t.Error("a write from before is lost")
	}
}

// Two of three members are lost for good: the third goes on alone, in a new epoch, and others join it.
func (m *members) testForceNewCluster(t *testing.T) {
	retry(t, m.stores[0], put(KindHost, "acknowledged", `1`, Any))
	was := m.stores[0].Cluster()
	if err := m.stores[0].Sync(patient(t)); err != nil {
		t.Fatal(err)
	}
	m.stop(1, 2, 0)
	m.options[0].ForceNewCluster = true
	m.start(t, 0)
	s := m.stores[0]
	now := s.Cluster()
	if _, ok := s.Get(Key{KindHost, "acknowledged"}); !ok || now.ID != was.ID || now.Epoch <= was.Epoch {
		t.Errorf("cluster %+v, before %+v; the write is there: %v", now, was, ok)
	}
	st, err := s.Status(patient(t))
	if err != nil || len(st.Members) != 1 {
		t.Fatalf("%+v, %v", st, err)
	}
	fresh := m.options[1]
	fresh.Dir, fresh.Name = t.TempDir(), "new"
	m.join(t, s, fresh)
}

// join adds a member to a cluster, first as a learner.
func (m *members) join(t *testing.T, s *Store, o Options) {
	t.Helper()
	peers := *o.Peers
	id, list, err := s.AddMember(patient(t), o.Name, peers.Listen)
	if err != nil {
		t.Fatal(err)
	}
	peers.Members, peers.Existing = list, true
	o.Peers = &peers
	var joined *Store
	var opening sync.WaitGroup
	opening.Go(func() {
		if joined, err = Open(patient(t), o); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the learner is promoted", func() bool {
		err := s.Promote(patient(t), id)
		if err != nil && !errors.Is(err, ErrLearning) {
			t.Log(err)
		}
		return err == nil
	})
	if opening.Wait(); joined == nil {
		t.FailNow()
	}
	defer joined.Close()
	rev := retry(t, joined, put(KindHost, "by the new member", `1`, Any))
	if err := s.mem.wait(patient(t), rev); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(docsOf(s), docsOf(joined)); diff != "" {
		t.Error(diff)
	}
	if err := s.RemoveMember(patient(t), id); err != nil {
		t.Error(err)
	}
	retry(t, s, put(KindHost, "alone again", `1`, Any))
}

// A member that starts where there is no quorum says so when its time is over, and starts when there is one.
func TestAStartWithoutAQuorum(t *testing.T) {
	t.Parallel()
	m := newMembers(t, 3)
	retry(t, m.stores[0], put(KindHost, "kept", `1`, Any))
	m.stop(0, 1, 2)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if s, err := Open(ctx, m.options[0]); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%v, %v", s, err)
	}
	m.start(t, 0, 2)
	if o, ok := m.stores[0].Get(Key{KindHost, "kept"}); !ok || string(o.Doc) != `1` {
		t.Errorf("%+v, %v", o, ok)
	}
}

// A controller that began alone becomes the first of several: it gets an address, and a second joins.
func TestOneMemberBecomesTwo(t *testing.T) {
	t.Parallel()
	files := peerFiles(t)
	o := Options{Dir: t.TempDir(), Name: "first", Fast: true, Log: testLog(t)}
	s := open(t, o)
	write(t, s, put(KindHost, "from before", `1`, New))
	files.Listen = []string{freeURL(t)}
	self := uint64(s.etcd.Server.MemberID())
	if err := s.SetPeerURLs(patient(t), self, []string{"http://127.0.0.1:1"}); err == nil {
		t.Error("peers without TLS are accepted")
	}
	if err := s.SetPeerURLs(patient(t), self, files.Listen); err != nil {
		t.Fatal(err)
	}
	s.Close()
	first, second := files, files
	first.Members, second.Listen = []string{"first=" + files.Listen[0]}, []string{freeURL(t)}
	o.Peers = &first
	s = open(t, o)
	(&members{}).join(t, s, Options{Dir: t.TempDir(), Name: "second", Fast: true, Log: testLog(t), Peers: &second})
	if _, ok := s.Get(Key{KindHost, "from before"}); !ok {
		t.Error("a write from before is lost")
	}
}
