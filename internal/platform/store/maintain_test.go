package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestHowFarTheHistoryGoes(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	m := &keeper{marks: []mark{{100, start}}}
	for _, c := range []struct {
		name  string
		after time.Duration
		rev   int64
		want  int64
	}{
		{"young and short", time.Minute, 200, 0},
		{"the first is old", 5 * time.Minute, 300, 100},
		{"the second is old", 6*time.Minute + time.Second, 400, 200},
		{"too many revisions", 7 * time.Minute, 5000, 4000},
		{"nothing more", 7 * time.Minute, 5000, 0},
		{"all are old", time.Hour, 5001, 5000},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := m.compactTo(mark{c.rev, start.Add(c.after)}, 5*time.Minute, 1000)
			if got != c.want {
				t.Errorf("compacted to %d, want %d", got, c.want)
			}
			m.note(got, false)
		})
	}
}

// compactedAt tells whether etcd no longer knows a revision.
func compactedAt(t *testing.T, s *Store, rev int64) bool {
	t.Helper()
	_, err := s.client.Get(patient(t), s.keys.meta("cluster"), clientv3.WithRev(rev))
	if err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		t.Fatal(err)
	}
	return err != nil
}

func TestOneControllerAtATimeCompacts(t *testing.T) {
	s := open(t, Options{Dir: t.TempDir(), Maintain: Maintain{KeepRevisions: 10, DefragAbove: 1, DefragRatio: 0.5}})
	other := beside(t, s)
	first := write(t, s, put(KindHost, "a", `0`, New))
	for i := range 50 {
		write(t, s, put(KindHost, "a", fmt.Sprint(i), Any))
	}
	err := s.keeper.alone(patient(t), func() error {
		if err := other.Maintain(patient(t)); err != nil {
			t.Error(err)
		}
		return nil
	})
	if err != nil || compactedAt(t, s, first) {
		t.Errorf("compacted by another controller meanwhile (%v)", err)
	}
	if err := other.Maintain(patient(t)); err != nil {
		t.Fatal(err)
	}
	st, err := other.Status(patient(t))
	if err != nil || !compactedAt(t, s, first) || st.Compacted < first+30 || st.Defragmented.IsZero() {
		t.Errorf("%+v, %v", st, err)
	}
	if o, ok := s.Get(Key{KindHost, "a"}); !ok || string(o.Doc) != `49` {
		t.Errorf("afterwards: %+v", o)
	}
	write(t, s, put(KindHost, "a", `"after"`, Any))
}

// A store whose watch was away while the history was compacted reads the whole state again, and says so.
func TestAWatchGoesOnBehindACompaction(t *testing.T) {
	s := openNew(t)
	write(t, s, put(KindHost, "goes", `0`, New), put(KindHost, "stays", `0`, New))
	late := &Store{Limits: s.Limits, opts: s.opts, keys: s.keys, log: s.log, mem: newMemory(), client: s.client}
	m := newMirror(late)
	if err := m.load(patient(t)); err != nil {
		t.Fatal(err)
	}
	late.ctx = t.Context()
	f := &follower{t: t}
	watch := late.Watch(t.Context(), 0)
	f.until(patient(t), watch, late.Revision())

	write(t, s, Change{Key: Key{KindHost, "goes"}, Delete: true, IfVersion: Any})
	for i := range 20 {
		write(t, s, put(KindHost, fmt.Sprint("new", i), `1`, New))
	}
	if err := s.keeper.compactAt(patient(t), s.Revision()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		m.run(ctx)
		close(done)
	}()
	last := write(t, s, put(KindHost, "last", `1`, New))
	f.until(patient(t), watch, last)
	if diff := cmp.Diff(docsOf(s), f.docs); diff != "" || f.resets != 2 {
		t.Errorf("%d resets: %s", f.resets, diff)
	}
	stop()
	<-done
}

// fill writes until the quota is reached.
func fill(t *testing.T, s *Store, name func(i int) string) {
	t.Helper()
	large := `"` + strings.Repeat("x", 1<<19) + `"`
	for i := range 200 {
		_, err := s.Write(patient(t), []Change{put(KindTemplate, name(i), large, Any)})
		if errors.Is(err, ErrNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the quota is not reached")
}

// overfill writes what may use what is kept of the quota, until that is reached.
func overfill(t *testing.T, s *Store) {
	t.Helper()
	c := put(KindTemplate, "vital", `"`+strings.Repeat("x", 1<<19)+`"`, Any)
	c.Vital = true
	for range 100 {
		_, err := s.Write(patient(t), []Change{c})
		if errors.Is(err, ErrNoSpace) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the quota is not reached")
}

// crowd opens a closed store again with LeastQuota. What is in use then, without history and free pages, is more than
// ordinary writes may take: no maintenance helps.
func crowd(t *testing.T, o Options) *Store {
	t.Helper()
	o.QuotaBytes = 4 * LeastQuota
	s := open(t, o)
	large := `"` + strings.Repeat("x", 1<<19) + `"`
	for i := range most(LeastQuota)>>19 + 2 {
		write(t, s, put(KindTemplate, strconv.FormatInt(i, 10), large, New))
	}
	s.Close()
	o.QuotaBytes = LeastQuota
	return open(t, o)
}

func hasAlarm(t *testing.T, s *Store) bool {
	t.Helper()
	st, err := s.Status(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return len(st.Alarms) > 0
}

func TestAQuotaThatIsReachedIsRecoveredFrom(t *testing.T) {
	o := Options{Dir: t.TempDir(), QuotaBytes: LeastQuota}
	s := open(t, o)
	write(t, s, put(KindHost, "before", `1`, New))
	t.Run("by its history", func(t *testing.T) {
		fill(t, s, func(int) string { return "one" })
		if hasAlarm(t, s) {
			t.Error("ordinary writes take what is kept of the quota")
		}
		overfill(t, s)
		if !hasAlarm(t, s) {
			t.Error("there is no alarm")
		}
		if _, ok := s.Get(Key{KindHost, "before"}); !ok {
			t.Error("reads don't go on")
		}
		if err := s.Maintain(patient(t)); err != nil {
			t.Fatal(err)
		}
		if hasAlarm(t, s) {
			t.Error("the alarm stays")
		}
		write(t, s, put(KindHost, "after", `1`, New))
	})
	t.Run("by its objects", func(t *testing.T) {
		s.Close()
		s := crowd(t, o)
		if err := s.Maintain(patient(t)); !errors.Is(err, ErrNoSpace) {
			t.Errorf("nothing can be compacted, and the error is %v", err)
		}
		overfill(t, s)
		if !hasAlarm(t, s) {
			t.Error("there is no alarm")
		}
		var deletions []Change
		for _, o := range s.List(KindTemplate) {
			deletions = append(deletions, Change{Key: o.Key, Delete: true, IfVersion: o.Version})
		}
		write(t, s, deletions...) // what only deletes is taken
		if err := s.Maintain(patient(t)); err != nil {
			t.Fatal(err)
		}
		write(t, s, put(KindHost, "after that", `1`, New))
		st, err := s.Status(patient(t))
		if err != nil || st.Members[0].Health.Size > 4<<20 || st.Quota != 16<<20 {
			t.Errorf("%+v, %v", st.Members[0].Health, err)
		}
	})
}

func TestWhenAFullStoreIsDefragmentedOnceMore(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	last := attempt{at: now, removed: 300}
	for _, c := range []struct {
		name    string
		last    attempt
		after   time.Duration
		removed int64
		alarm   bool
		want    bool
	}{
		{"for the first time", attempt{}, 0, 0, false, true},
		{"nothing happened", last, time.Minute, 300, false, false},
		{"a little was removed", last, time.Minute, 309, false, false},
		{"a hundredth of the quota was removed", last, time.Minute, 310, false, true},
		{"etcd refuses writes since", last, time.Minute, 300, true, true},
		{"etcd refused writes then", attempt{at: now, removed: 300, alarm: true}, soon - 1, 300, true, false},
		{"etcd still refuses writes", attempt{at: now, removed: 300, alarm: true}, soon, 300, true, true},
		{"long ago", last, again, 300, false, true},
		{"it failed", attempt{at: now.Add(soon - again), removed: 300}, soon, 300, false, true},
		{"the clock was set back", last, -time.Hour, 300, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.last.helps(now.Add(c.after), c.removed, 1000, c.alarm); got != c.want {
				t.Error(got)
			}
		})
	}
}

// A store that starts at its quota can be read; with a larger quota it takes changes at once.
func TestALargerQuotaEndsTheAlarm(t *testing.T) {
	o := Options{Dir: t.TempDir(), QuotaBytes: LeastQuota}
	s := open(t, o)
	write(t, s, put(KindHost, "before", `1`, New))
	s.Close()
	s = crowd(t, o)
	if err := s.Maintain(patient(t)); !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "--etcd-quota") {
		t.Fatal(err)
	}
	first, err := s.Status(patient(t))
	if err != nil || first.Defragmented.IsZero() {
		t.Fatal(first.Defragmented, err)
	}
	if err := s.Maintain(patient(t)); !errors.Is(err, ErrNoSpace) {
		t.Error(err)
	}
	if st, err := s.Status(patient(t)); err != nil || st.Defragmented != first.Defragmented {
		t.Error("defragmented again for nothing: ", first.Defragmented, st.Defragmented, err)
	}
	overfill(t, s)
	want := docsOf(s)
	s.Close()
	s = open(t, o)
	if diff := cmp.Diff(want, docsOf(s)); diff != "" {
		t.Error(diff)
	}
	_, err = s.Write(patient(t), []Change{put(KindHost, "refused", `1`, New)})
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), "controller with a larger --etcd-quota") {
		t.Error(err)
	}
	s.Close()
	o.QuotaBytes *= 4 // what is in use may be twice the quota: the last transactions were under way
	s = open(t, o)
	write(t, s, put(KindHost, "after", `1`, New))
	want[Key{KindHost, "after"}] = `1`
	if diff := cmp.Diff(want, docsOf(s)); diff != "" || hasAlarm(t, s) {
		t.Error("with a larger quota: ", diff)
	}
}

// A restored cluster is the same one in a later epoch: what it gives out was never given before.
func TestARestoreRaisesTheEpoch(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 5)
	kept := claim(t, s, ClaimRequest{PortGroup: web, Binding: nic("a", "vm1")})
	file := filepath.Join(t.TempDir(), "snapshot")
	size, err := s.SnapshotFile(patient(t), file)
	if info, e := os.Stat(file); err != nil || e != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
		t.Fatalf("%d bytes, %v, %v %v", size, err, info, e)
	}
	before := docsOf(s)
	withGroup(t, s, "dvs/lost", 100)
	lost := claim(t, s, ClaimRequest{PortGroup: "dvs/lost", Binding: nic("a", "vm2")})
	if err := s.Resize(patient(t), web, 8, nil); err != nil { // in places that the snapshot shows as empty
		t.Fatal(err)
	}
	since := ports(t, s, web)
	was, lostRevision := s.Cluster(), s.Revision()
	s.Close()

	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(file, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if err := Restore(file, Options{Dir: dir}); err == nil {
		t.Error("a directory with data is restored into")
	}
	r := open(t, Options{Dir: dir})
	if diff := cmp.Diff(before, docsOf(r)); diff != "" {
		t.Error(diff)
	}
	now := r.Cluster()
	if now.ID != was.ID || now.Epoch <= was.Epoch || r.Revision() <= lostRevision {
		t.Errorf("cluster %+v at %d, before %+v at %d", now, r.Revision(), was, lostRevision)
	}
	if p, ok := r.GetPort(web, kept.ID); !ok || p.Binding == nil || p.Binding.VM != "vm1" {
		t.Errorf("port %s is %+v", kept.ID, p)
	}
	withGroup(t, r, "dvs/new", 100)
	for id := range ports(t, r, "dvs/new") {
		if number, _ := chunkOf(id); number <= func() int64 { n, _ := chunkOf(lost.ID); return n }() {
			t.Errorf("port %s may have been there before the restore", id)
		}
	}
	atSnapshot := ports(t, r, web)
	if err := r.Resize(patient(t), web, 12, nil); err != nil {
		t.Fatal(err)
	}
	for id := range ports(t, r, web) {
		if _, there := atSnapshot[id]; !there {
			if _, given := since[id]; given {
				t.Errorf("port %s was made after the snapshot, and is made again", id)
			}
		}
	}
	r.Close()
	if again := open(t, Options{Dir: dir}); again.Cluster() != now {
		t.Errorf("after a restart %+v, before it %+v", again.Cluster(), now)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text[len(text)/2] ^= 1
	if err := os.WriteFile(damaged, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Restore(damaged, Options{Dir: filepath.Join(t.TempDir(), "x")}); err == nil {
		t.Error("a damaged snapshot is restored")
	}
}

// A port that is free by a snapshot may have got an owner since, who comes for it yet. One who comes first and has had
// another port is not given it, unless there is no other.
func TestARestoreSparesPortsThatMayHaveGotOwners(t *testing.T) {
	s := openNew(t)
	withGroup(t, s, web, 3)
	file := filepath.Join(t.TempDir(), "snapshot")
	if _, err := s.SnapshotFile(patient(t), file); err != nil {
		t.Fatal(err)
	}
	s.Close()
	dir := filepath.Join(t.TempDir(), "restored")
	if err := Restore(file, Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	r := open(t, Options{Dir: dir})
	before := ports(t, r, web)
	take := func(vm string, spare bool, limit int) (old bool) {
		t.Helper()
		p := claim(t, r, ClaimRequest{PortGroup: web, Binding: nic("b", vm), Spare: spare, Limit: limit})
		_, old = before[p.ID]
		return old
	}
	for i := range 2 {
		if take(fmt.Sprintf("vm%d", i), true, 5) {
			t.Errorf("VM %d of an elastic group gets a port that another may come for", i)
		}
	}
	if !take("vm2", true, 5) {
		t.Error("beyond the limit it gets none of those that there are")
	}
	if !take("vm3", false, 0) {
		t.Error("one who has had no port gets none of the free ones")
	}
	if n := len(ports(t, r, web)); n != 5 {
		t.Errorf("the group has %d ports", n)
	}
}
