package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/certs"
)

// outside is an etcd cluster of Debian's own processes.
type outside struct {
	members []*outsideMember
	client  *tls.Config
}

type outsideMember struct {
	args []string
	url  string
	dir  string
	cmd  *exec.Cmd
}

func newOutside(t *testing.T, n int) *outside {
	t.Helper()
	testkit.Tool(t, "etcd")
	ca := certs.New(t, "outside")
	pair := ca.Issue("127.0.0.1", time.Hour)
	dir := t.TempDir()
	files := map[string][]byte{"cert": pair.Cert, "key": pair.Key, "ca": ca.PEM()}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{client: &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{own}}}
	var cluster []string
	for i := range n {
		peer := freeURL(t)
		m := &outsideMember{url: freeURL(t), dir: filepath.Join(dir, fmt.Sprint("data", i))}
		m.args = []string{"--name", fmt.Sprint("e", i), "--data-dir", m.dir,
			"--listen-client-urls", m.url, "--advertise-client-urls", m.url,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--logger", "zap", "--log-level", "error", "--heartbeat-interval", "20", "--election-timeout", "200"}
		for _, of := range []string{"", "peer-"} {
			m.args = append(m.args, "--"+of+"cert-file", filepath.Join(dir, "cert"), "--"+of+"key-file",
				filepath.Join(dir, "key"), "--"+of+"trusted-ca-file", filepath.Join(dir, "ca"),
				"--"+of+"client-cert-auth")
		}
		cluster = append(cluster, fmt.Sprintf("e%d=%s", i, peer))
		o.members = append(o.members, m)
	}
	for _, m := range o.members {
		m.args = append(m.args, "--initial-cluster", strings.Join(cluster, ","))
		m.start(t)
		t.Cleanup(m.kill)
	}
	return o
}

func (m *outsideMember) start(t *testing.T) {
	t.Helper()
	m.cmd = exec.Command("etcd", m.args...)
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
}

// kill ends the process as a power failure would.
func (m *outsideMember) kill() {
	if m.cmd == nil {
		return
	}
	if err := m.cmd.Process.Kill(); err == nil {
		_ = m.cmd.Wait() // its status says that it was killed
	}
	m.cmd = nil
}

func (o *outside) options() Options {
	opts := Options{TLS: o.client, Prefix: "/site-a", Timeout: 10 * time.Second,
		Maintain: Maintain{KeepRevisions: 100, DefragAbove: 1, DefragRatio: 0.5, Outside: true}}
	for _, m := range o.members {
		opts.Endpoints = append(opts.Endpoints, m.url)
	}
	return opts
}

// Debian's etcd as an existing cluster, members of which are killed under writes: what was acknowledged is there, and
// whoever watches has all of it.
func TestAnExistingClusterWhoseMembersAreKilled(t *testing.T) {
	testkit.Long(t, "kills members of a cluster; TestAnExistingClusterIsRestoredUnderTheStores has one")
	t.Parallel()
	o := newOutside(t, 3)
	stores := []*Store{open(t, o.options()), open(t, o.options())}
	if stores[0].Cluster() != stores[1].Cluster() {
		t.Fatalf("%+v, %+v", stores[0].Cluster(), stores[1].Cluster())
	}
	watches := []<-chan Batch{stores[0].Watch(t.Context(), 0), stores[1].Watch(t.Context(), 0)}
	var acknowledged sync.Map
	var count atomic.Int64
	stop, writers := make(chan struct{}), sync.WaitGroup{}
	for w := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key, doc := Key{KindHost, fmt.Sprintf("w%d-%d", w, i)}, fmt.Sprintf(`"%d"`, i)
				_, err := stores[w%2].Write(t.Context(), []Change{{Key: key, Doc: []byte(doc), IfVersion: Any}})
				var u *Unavailable
				switch {
				case err == nil:
					acknowledged.Store(key, doc)
					count.Add(1)
				case !errors.As(err, &u):
					t.Errorf("write %s: %v", key, err)
				}
			}
		})
	}
	for round := range 6 {
		victim := o.members[round%3]
		until(t, &count, 40)
		victim.kill()
		until(t, &count, 40) // the others go on
		victim.start(t)
	}
	close(stop)
	writers.Wait()
	checkAcknowledged(t, stores, watches, &acknowledged)
	t.Run("claims", func(t *testing.T) { testOutsideClaims(t, stores) })
	t.Run("maintenance", func(t *testing.T) { testOutsideMaintenance(t, stores) })
}

// until waits until so many more are counted.
func until(t *testing.T, count *atomic.Int64, more int64) {
	t.Helper()
	want := count.Load() + more
	eventually(t, "writes go on", func() bool { return count.Load() >= want })
}

func checkAcknowledged(t *testing.T, stores []*Store, watches []<-chan Batch, acknowledged *sync.Map) {
	t.Helper()
	for i, s := range stores {
		eventually(t, "etcd answers", func() bool { return s.Sync(t.Context()) == nil })
		f := &follower{t: t}
		f.until(patient(t), watches[i], s.Revision())
		acknowledged.Range(func(key, doc any) bool {
			if got := f.docs[key.(Key)]; got != doc {
				t.Errorf("store %d: %s was acknowledged as %s, and is %q", i, key, doc, got)
			}
			return true
		})
		if diff := cmp.Diff(docsOf(stores[0]), f.docs); diff != "" || f.resets != 1 {
			t.Errorf("store %d, %d resets: %s", i, f.resets, diff)
		}
	}
}

func testOutsideClaims(t *testing.T, stores []*Store) {
	withGroup(t, stores[0], web, 20)
	if err := stores[1].Sync(patient(t)); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	var got atomic.Int64
	for i := range 40 {
		both.Go(func() {
			r := ClaimRequest{PortGroup: web, Binding: nic("h", fmt.Sprint("vm", i))}
			_, err := stores[i%2].Claim(patient(t), r)
			var none *NoFreePort
			if err == nil {
				got.Add(1)
			} else if !errors.As(err, &none) {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if got.Load() != 20 {
		t.Errorf("%d of 40 claims of 20 ports succeeded", got.Load())
	}
}

// An existing cluster is maintained when the options say so: compacted, and each member defragmented.
func testOutsideMaintenance(t *testing.T, stores []*Store) {
	first := stores[0].Revision()
	for i := range 150 {
		write(t, stores[i%2], put(KindHost, "a", fmt.Sprint(i), Any))
	}
	s := stores[0]
	eventually(t, "it is maintained", func() bool {
		if err := s.Maintain(patient(t)); err != nil {
			t.Log(err)
			return false
		}
		return true
	})
	st, err := s.Status(patient(t))
	if err != nil || !compactedAt(t, s, first) || st.Defragmented.IsZero() || len(st.Members) != 3 || st.Embedded {
		t.Errorf("%+v, %v", st, err)
	}
	for _, m := range st.Members {
		if m.Health == nil || !strings.HasPrefix(m.Health.Version, "3.") {
			t.Errorf("member %+v", m)
		}
	}
	write(t, s, put(KindHost, "after", `1`, Any))
}

// An existing cluster is restored by its own tools while controllers run: they take the older state as it is, in a new
// epoch, and write on.
func TestAnExistingClusterIsRestoredUnderTheStores(t *testing.T) {
	t.Parallel()
	o := newOutside(t, 1)
	m := o.members[0]
	stores := []*Store{open(t, o.options()), open(t, o.options())}
	withGroup(t, stores[0], web, 10)
	write(t, stores[0], put(KindHost, "kept", `1`, New))
	early := filepath.Join(t.TempDir(), "early")
	m.kill()
	if err := os.CopyFS(early, os.DirFS(m.dir)); err != nil {
		t.Fatal(err)
	}
	m.start(t)
	for i, s := range stores {
		for n := range 20 {
			retry(t, s, put(KindHost, fmt.Sprint("lost", i, n), `1`, Any))
		}
	}
	was := stores[0].Cluster()
	f := &follower{t: t}
	watch := stores[1].Watch(t.Context(), 0)
	f.until(patient(t), watch, stores[1].Revision())
	m.kill()
	if err := errors.Join(os.RemoveAll(m.dir), os.CopyFS(m.dir, os.DirFS(early))); err != nil {
		t.Fatal(err)
	}
	m.start(t)
	for i, s := range stores {
		eventually(t, fmt.Sprint("store ", i, " has the older state in a new epoch"), func() bool {
			_, lost := s.Get(Key{KindHost, "lost0 0"})
			return !lost && s.Cluster().Epoch > was.Epoch
		})
	}
	retry(t, stores[0], put(KindHost, "after", `1`, New))
	claim(t, stores[1], ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")})
	if err := errors.Join(stores[0].Sync(patient(t)), stores[1].Sync(patient(t))); err != nil {
		t.Fatal(err)
	}
	for b := range watch {
		f.take(b)
		if _, there := f.docs[Key{KindHost, "after"}]; there && b.Revision >= stores[1].Revision() {
			break
		}
	}
	if diff := cmp.Diff(docsOf(stores[0]), f.docs) + cmp.Diff(docsOf(stores[0]), docsOf(stores[1])); diff != "" {
		t.Error(diff)
	}
	if now := stores[0].Cluster(); now.ID != was.ID || f.resets < 2 {
		t.Errorf("cluster %+v, before %+v; %d resets", now, was, f.resets)
	}
}

// Several Heddle clusters share one etcd, each below its prefix.
func TestPrefixesKeepClustersApart(t *testing.T) {
	t.Parallel()
	o := newOutside(t, 1)
	options := o.options()
	a := open(t, options)
	options.Prefix = "/site-b/"
	b := open(t, options)
	write(t, a, put(KindHost, "a", `1`, New))
	write(t, b, put(KindHost, "b", `1`, New))
	write(t, a, put(KindHost, "a2", `1`, New))
	if err := errors.Join(a.Sync(patient(t)), b.Sync(patient(t))); err != nil {
		t.Fatal(err)
	}
	want := map[Key]string{{KindHost, "b"}: `1`}
	if diff := cmp.Diff(want, docsOf(b)); diff != "" || a.Cluster().ID == b.Cluster().ID {
		t.Errorf("%s%v %v", diff, a.Cluster(), b.Cluster())
	}
}

// A user of etcd that may read and write below the prefix, and nothing else, is enough.
func TestCredentialsForThePrefixAreEnough(t *testing.T) {
	t.Parallel()
	o := newOutside(t, 1)
	options := o.options()
	options.Timeout = time.Minute // etcd takes its time over each password
	admin := open(t, Options{Endpoints: options.Endpoints, TLS: options.TLS, Prefix: "/admin"}).client
	ctx := patient(t)
	prefix := options.Prefix + "/"
	_, err := admin.RoleAdd(ctx, "site-a")
	_, err2 := admin.RoleGrantPermission(ctx, "site-a", prefix, clientv3.GetPrefixRangeEnd(prefix),
		clientv3.PermissionType(clientv3.PermReadWrite))
	_, err3 := admin.UserAdd(ctx, "heddle", "secret")
	_, err4 := admin.UserGrantRole(ctx, "heddle", "site-a")
	_, err5 := admin.UserAdd(ctx, "root", "root")
	_, err6 := admin.UserGrantRole(ctx, "root", "root")
	_, err7 := admin.AuthEnable(ctx)
	if err := errors.Join(err, err2, err3, err4, err5, err6, err7); err != nil {
		t.Fatal(err)
	}
	options.Username, options.Password = "heddle", "secret"
	s := open(t, options)
	withGroup(t, s, web, 3)
	claim(t, s, ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")})
	if err := s.Sync(ctx); err != nil {
		t.Error(err)
	}
	st, err := s.Status(ctx)
	if err != nil || len(st.Members) != 1 || st.Members[0].Health == nil {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := s.client.Get(ctx, "/admin/"); err == nil {
		t.Error("the user may read everything: this test is void")
	}
	options.Password = "wrong"
	options.Fast, options.Log = true, testLog(t)
	if _, err := Open(ctx, options); err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestOptionsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"nowhere", Options{}},
		{"both", Options{Dir: "x", Endpoints: []string{"https://a"}}},
		{"a password in plain text", Options{Endpoints: []string{"http://a:2379"}, Password: "secret"}},
		{"peers of others", Options{Endpoints: []string{"https://a:2379"}, Peers: &Peers{}}},
		{"peers without TLS", Options{Dir: "x", Peers: &Peers{Listen: []string{"http://a:1"}, Members: []string{"a"}}}},
		{"peers without a certificate",
			Options{Dir: "x", Peers: &Peers{Listen: []string{"https://a:1"}, Members: []string{"a"}}}},
		{"a name with =", Options{Dir: "x", Name: "a=b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(context.Background(), c.o)
			if err == nil {
				s.Close()
				t.Fatal("opened")
			}
			if strings.Contains(err.Error(), "secret") {
				t.Error("the error has the password")
			}
		})
	}
}
