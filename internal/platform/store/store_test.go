package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"

	"heddle/internal/test/testkit/leaks"
)

// patience is how long a condition may take; no test waits that long when all is well.
const patience = 2 * time.Minute

// testLog writes warnings of the store into the test's output.
func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a store and closes it with the test.
func open(t *testing.T, o Options) *Store {
	t.Helper()
	o.Fast, o.Log = true, testLog(t)
	if o.Timeout == 0 {
		o.Timeout = patience // nothing here waits for it
	}
	s, err := Open(patient(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// openNew opens a store with an etcd of its own.
func openNew(t *testing.T) *Store {
	t.Helper()
	return open(t, Options{Dir: t.TempDir()})
}

// beside is another controller's store on the same etcd, with a memory and a batcher of its own.
func beside(t *testing.T, s *Store) *Store {
	t.Helper()
	other, err := openBeside(patient(t), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return other
}

func openBeside(ctx context.Context, s *Store) (*Store, error) {
	o := &Store{Limits: s.Limits, opts: s.opts, keys: s.keys, log: s.log, mem: newMemory(), client: s.client,
		closing: s.closing,
		etcd:    s.etcd, borrowed: true, batchDone: make(chan struct{})}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o, o.begin(ctx)
}

func write(t *testing.T, s *Store, changes ...Change) int64 {
	t.Helper()
	rev, err := s.Write(patient(t), changes)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

func put(kind Kind, name, doc string, version int64) Change {
	return Change{Key: Key{kind, name}, Doc: []byte(doc), IfVersion: version}
}

func TestObjectsKeepTheirDocumentAndIdentity(t *testing.T) {
	s := openNew(t)
	doc := "{ \"vlan\": 10,\n  \"fieldOfTheFuture\": [1, 2.50] }"
	rev := write(t, s, put(KindPortGroup, "dvs/web", doc, New))
	first, ok := s.Get(Key{KindPortGroup, "dvs/web"})
	if !ok || string(first.Doc) != doc || first.Version != rev || first.ID == "" || s.Revision() != rev {
		t.Fatalf("read %+v %v at %d, written at %d", first, ok, s.Revision(), rev)
	}
	write(t, s, put(KindPortGroup, "dvs/web", `{}`, first.Version))
	second, _ := s.Get(first.Key)
	if second.ID != first.ID || string(second.Doc) != `{}` {
		t.Errorf("after a change: %+v", second)
	}
	write(t, s, Change{Key: first.Key, Delete: true, IfVersion: second.Version})
	if o, ok := s.Get(first.Key); ok {
		t.Errorf("deleted, and there: %+v", o)
	}
	write(t, s, put(KindPortGroup, "dvs/web", `{}`, New), Change{Key: Key{KindHost, "a"}, Doc: []byte(`1`), ID: "h-1"})
	third, _ := s.Get(first.Key)
	host, _ := s.Get(Key{KindHost, "a"})
	if third.ID == first.ID || host.ID != "h-1" {
		t.Errorf("created again: %+v; with an identifier given: %+v", third, host)
	}
}

// What a newer controller wrote survives: kinds, and metadata, that this one doesn't know.
func TestWhatANewerVersionWroteSurvives(t *testing.T) {
	s := openNew(t)
	ctx := patient(t)
	key := s.keys.object(Key{"gatewayOfTheFuture", "g/1"})
	if _, err := s.client.Put(ctx, key, `{"id":"x1","owner":"north"}`+"\n"+`{"a":1}`); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	o, ok := s.Get(Key{"gatewayOfTheFuture", "g/1"})
	if !ok || o.ID != "x1" || string(o.Doc) != `{"a":1}` {
		t.Fatalf("read %+v %v", o, ok)
	}
	if diff := cmp.Diff([]Kind{"gatewayOfTheFuture"}, s.Kinds()); diff != "" {
		t.Error(diff)
	}
	write(t, s, put(o.Kind, o.Name, `{"a":2}`, o.Version))
	resp, err := s.client.Get(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(resp.Kvs[0].Value), `{"id":"x1","owner":"north"}`+"\n"+`{"a":2}`; got != want {
		t.Errorf("etcd holds %q, want %q", got, want)
	}
}

// Of several changes on a version each is refused but the first, as a whole, and is told who is ahead.
func TestS83_AChangeMadeOnAnOldVersionIsRefused(t *testing.T) {
	s := openNew(t)
	other := beside(t, s)
	v1 := write(t, s, put(KindSwitch, "dvs", `1`, New))
	v2 := write(t, other, put(KindSwitch, "dvs", `2`, v1))
	for _, c := range []struct {
		name    string
		change  Change
		current int64
	}{
		{"old", put(KindSwitch, "dvs", `3`, v1), v2},
		{"new", put(KindSwitch, "dvs", `3`, New), v2},
		{"from the future", put(KindSwitch, "dvs", `3`, v2+100), v2},
		{"of none", put(KindSwitch, "other", `3`, v1), 0},
		{"deletion", Change{Key: Key{KindSwitch, "dvs"}, Delete: true, IfVersion: v1}, v2},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := contents(t, s)
			_, err := s.Write(patient(t), []Change{put(KindHost, "bystander", `1`, New), c.change})
			var conflict *Conflict
			want := &Conflict{Key: c.change.Key, Asked: c.change.IfVersion, Current: c.current}
			if !errors.As(err, &conflict) || cmp.Diff(want, conflict) != "" {
				t.Errorf("%v (%+v), want %+v", err, conflict, want)
			}
			if diff := cmp.Diff(before, contents(t, s)); diff != "" {
				t.Error("half of a refused transaction was written: (-before +after)\n", diff)
			}
		})
	}
	if rev := write(t, s, put(KindSwitch, "dvs", `4`, Any)); rev <= v2 {
		t.Errorf("whatever the version: revision %d after %d", rev, v2)
	}
}

// contents are the objects, indexes and records that etcd holds of a store, whatever the store has heard of them.
func contents(t *testing.T, s *Store) map[string]string {
	t.Helper()
	resp, err := s.client.Get(patient(t), s.keys.prefix, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, kv := range resp.Kvs {
		if !strings.HasPrefix(string(kv.Key), s.keys.meta("")) {
			all[string(kv.Key)] = string(kv.Value)
		}
	}
	return all
}

// Two stores whose memories are behind each other's writes agree on who was first.
func TestS83_OneOfTwoControllersWins(t *testing.T) {
	a := openNew(t)
	b := beside(t, a)
	version := write(t, a, put(KindSwitch, "dvs", `{"n":0}`, New))
	if err := b.Sync(patient(t)); err != nil {
		t.Fatal(err)
	}
	for round := range 200 {
		var won [2]int64
		var errs [2]error
		var both sync.WaitGroup
		for i, s := range []*Store{a, b} {
			both.Go(func() {
				change := put(KindSwitch, "dvs", fmt.Sprintf("[%d,%d]", round, i), version)
				won[i], errs[i] = s.Write(patient(t), []Change{change})
			})
		}
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("round %d: %v, %v", round, errs[0], errs[1])
		}
		var conflict *Conflict
		if !errors.As(errors.Join(errs[:]...), &conflict) || conflict.Current != won[0]+won[1] {
			t.Fatalf("round %d: %v, written at %v", round, errors.Join(errs[:]...), won)
		}
		version = won[0] + won[1]
	}
}

// Writes that come together share transactions; one that is refused takes no other with it.
func TestARefusedWriteOfABatchRefusesNoOther(t *testing.T) {
	s := openNew(t)
	s.batch.collect = 0
	start := write(t, s, put(KindHost, "taken", `0`, New))
	const writers = 500
	revs, errs := make([]int64, writers), make([]error, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			name, version := fmt.Sprintf("h%d", i), New
			if i%5 == 0 {
				name = "taken"
			}
			revs[i], errs[i] = s.Write(patient(t), []Change{put(KindHost, name, `1`, version)})
		})
	}
	all.Wait()
	transactions := map[int64]bool{}
	for i := range writers {
		var conflict *Conflict
		switch {
		case i%5 != 0 && errs[i] != nil:
			t.Errorf("write %d: %v", i, errs[i])
		case i%5 == 0 && (!errors.As(errs[i], &conflict) || conflict.Current != start):
			t.Errorf("write %d of what exists: %v", i, errs[i])
		case i%5 != 0:
			transactions[revs[i]] = true
		}
	}
	if got := len(s.List(KindHost)); got != writers*4/5+1 {
		t.Errorf("%d hosts", got)
	}
	if len(transactions) > writers/8 {
		t.Errorf("%d transactions for %d writes: they aren't put together", len(transactions), writers)
	}
}

// In one transaction the second of two that create the same is told the version that the first made.
func TestTwoWritesOfOneBatchConflict(t *testing.T) {
	s := openNew(t)
	b := newBatcher(s)
	changing := func(c Change) *request {
		eval := onView(s, func(t *tx) error { return t.change(&c, "id") })
		return &request{done: make(chan result, 1), eval: eval}
	}
	batch := []*request{changing(put(KindHost, "a", `1`, New)), changing(put(KindHost, "a", `2`, New)),
		changing(Change{Key: Key{KindHost, "a"}, Delete: true, IfVersion: Any}), changing(put(KindHost, "a", `3`, New))}
	b.commit(patient(t), batch)
	rev := (<-batch[0].done).rev
	second := (<-batch[1].done).err
	var conflict *Conflict
	if !errors.As(second, &conflict) || conflict.Current != rev {
		t.Errorf("second: %v, first at %d", second, rev)
	}
	if third, fourth := <-batch[2].done, <-batch[3].done; third.err != nil || fourth.err != nil || fourth.rev != rev {
		t.Errorf("third %v, fourth %v", third, fourth)
	}
	if err := s.mem.wait(patient(t), rev); err != nil {
		t.Fatal(err)
	}
	if o, _ := s.Get(Key{KindHost, "a"}); string(o.Doc) != `3` {
		t.Errorf("in the end %s", o.Doc)
	}
}

// What doesn't fit into one transaction waits for the next, in order; also when it reads otherwise the second time.
func TestABatchThatIsTooLargeIsDivided(t *testing.T) {
	s := openNew(t)
	b := newBatcher(s)
	large := `"` + strings.Repeat("x", 300<<10) + `"`
	var batch []*request
	for i := range 100 {
		times := 0
		eval := onView(s, func(t *tx) error {
			times++
			for n := range 2 + times { // it grows when it is evaluated again
				t.get(t.keys.index(fmt.Sprint(i, "-", n)))
			}
			doc := `1`
			if i >= 90 {
				doc = large
			}
			change := put(KindHost, fmt.Sprintf("h%02d", i), doc, New)
			return t.change(&change, "id")
		})
		batch = append(batch, &request{eval: eval, done: make(chan result, 1)})
	}
	for waiting := batch; len(waiting) > 0; waiting = b.waiting {
		b.waiting = nil
		b.commit(patient(t), waiting)
	}
	transactions := map[int64]int{}
	last := int64(0)
	for i, r := range batch {
		res := <-r.done
		if res.err != nil || res.rev < last {
			t.Fatalf("request %d: %d after %d, %v", i, res.rev, last, res.err)
		}
		last = res.rev
		transactions[res.rev]++
	}
	if len(transactions) < 6 || len(transactions) > 10 {
		t.Errorf("transactions of so many requests: %v", transactions)
	}
}

func TestWritesThatCannotBeAreRefused(t *testing.T) {
	s := openNew(t)
	many := make([]Change, MaxChanges+1)
	for i := range many {
		many[i] = put(KindHost, fmt.Sprint(i), `1`, New)
	}
	large := `"` + string(make([]byte, MaxDoc)) + `"`
	for _, c := range []struct {
		name    string
		changes []Change
	}{
		{"none", nil},
		{"too many", many},
		{"twice", []Change{put(KindHost, "a", `1`, New), put(KindHost, "a", `1`, New)}},
		{"no JSON", []Change{put(KindHost, "a", `{`, New)}},
		{"no name", []Change{put(KindHost, "", `1`, New)}},
		{"no kind", []Change{put("", "a", `1`, New)}},
		{"a kind with a slash", []Change{put("a/b", "a", `1`, New)}},
		{"no version", []Change{put(KindHost, "a", `1`, -2)}},
		{"too large", []Change{put(KindHost, "a", large, New)}},
		{"a deletion with a document", []Change{{Key: Key{KindHost, "a"}, Delete: true, Doc: []byte(`1`)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := s.Write(patient(t), c.changes); err == nil {
				t.Error("it was written")
			}
		})
	}
	if rev := write(t, s, many[:MaxChanges]...); len(s.List(KindHost)) != MaxChanges || rev != s.Revision() {
		t.Errorf("%d hosts at %d, written at %d", len(s.List(KindHost)), s.Revision(), rev)
	}
}

// A store that is opened again has what was acknowledged, and the versions go on.
func TestTheStateSurvivesARestart(t *testing.T) {
	leaks.Watch(t)
	dir := t.TempDir()
	s := open(t, Options{Dir: dir})
	var last int64
	for i := range 2*page + 10 { // several pages
		if i%MaxChanges == 0 {
			last = write(t, s, put(KindHost, fmt.Sprintf("h%04d", i), fmt.Sprint(i), New))
		}
	}
	batch := make([]Change, 0, MaxChanges)
	for i := range 2*page + 10 {
		batch = append(batch, put(KindPorts, fmt.Sprintf("p%05d", i), fmt.Sprint(i), New))
		if len(batch) == MaxChanges || i == 2*page+9 {
			last = write(t, s, batch...)
			batch = batch[:0]
		}
	}
	hosts, ports := s.List(KindHost), s.List(KindPorts)
	s.Close()
	s = open(t, Options{Dir: dir})
	if len(ports) != 2*page+10 || s.Revision() < last {
		t.Fatalf("%d ports at %d, last written at %d", len(ports), s.Revision(), last)
	}
	equal := cmpopts.IgnoreUnexported(Object{})
	if diff := cmp.Diff(hosts, s.List(KindHost), equal) + cmp.Diff(ports, s.List(KindPorts), equal); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Write(patient(t), []Change{put(KindHost, "h0000", `1`, hosts[0].Version)}); err != nil {
		t.Error(err)
	}
}

func TestAClosedStoreSaysSo(t *testing.T) {
	s := openNew(t)
	watch := s.Watch(t.Context(), 0)
	s.Close()
	if _, err := s.Write(patient(t), []Change{put(KindHost, "a", `1`, New)}); !errors.Is(err, ErrClosed) {
		t.Errorf("a write after the end: %v", err)
	}
	for range watch { // it is closed
	}
	s.Close()
}
