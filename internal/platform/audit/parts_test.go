package audit

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// However much one caller does, what others did stays in the log; what that caller did is recorded all the same, in
// files of its own.
func TestS137_NobodyPushesOutWhatOthersDid(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	b := Bounds{File: 4 << 10, Changes: 8, Refusals: 2, Frequent: 2}
	l, err := Open(filepath.Join(t.TempDir(), "audit"), b, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	makes := func(e Entry, times int) {
		t.Helper()
		for range times {
			now = now.Add(time.Millisecond)
			c, err := l.Begin(e)
			if err == nil {
				err = c.End(Failed, nil, "there is no such host")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	makes(Entry{Who: "ada", Token: "a1", Call: "ApplyDefinition"}, 1)
	makes(Entry{Who: "root", Call: "CreateGrant"}, 1)
	for i := range 5 { // a person has one part, with however many sign-ins
		makes(Entry{Who: "eve", Issuer: "https://id", Token: fmt.Sprint("e", i), Call: "ReleaseStaticPort"}, 30)
	}
	makes(Entry{Who: "bot", Token: "b1", Call: "SyncHosts"}, 50)
	makes(Entry{Who: "ada", Token: "a1", Call: "RemoveHost"}, 1)
	for who, want := range map[string]int{"ada": 2, "root": 1} {
		found, err := l.List(Query{Who: who})
		if err != nil || len(found.Entries) != want {
			t.Errorf("of %s %d entries are left, %v", who, len(found.Entries), err)
		}
	}
	found, err := l.List(Query{Most: 1, Who: "bot"})
	if err != nil || len(found.Entries) != 1 || found.Entries[0].Result != Failed {
		t.Errorf("the last of the one who does much: %+v, %v", found.Entries, err)
	}
	chains, err := l.Verify("")
	if err != nil || len(chains) != 4 || chains[2].Series != "frequent" || chains[2].Lines == 0 ||
		chains[3].Series != "frequent2" {
		t.Errorf("the files: %+v, %v", chains, err)
	}
	for _, c := range chains {
		if len(c.Faults) > 0 {
			t.Error(c)
		}
	}
	now = now.Add(partEvery) // the part is whole again
	makes(Entry{Who: "bot", Token: "b1", Call: "CreateGrant"}, 1)
	makes(Entry{Who: "eve", Issuer: "https://id", Call: "ReleaseStaticPort"}, 50)
	if found, err := l.List(Query{Call: "CreateGrant", Who: "bot"}); err != nil || len(found.Entries) != 1 {
		t.Errorf("a month later %d entries of it are left, %v", len(found.Entries), err)
	}
}

// Of callers who make many changes each has files of its own, also after a start: the one who makes the most pushes out
// what the others did as little as the others' part of the usual room.
func TestS137_CallersWhoDoMuchPushOutOnlyTheirOwn(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	dir := filepath.Join(t.TempDir(), "audit")
	b := Bounds{File: 16 << 10, Changes: 1, Refusals: 1, Frequent: 2}
	var l *Log
	open := func() {
		t.Helper()
		var err error
		if l, err = Open(dir, b, func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
	}
	open()
	makes := func(token string, times int) {
		t.Helper()
		for range times {
			c, err := l.Begin(Entry{Who: "x" + token, Token: token, Call: "SyncHosts"})
			if err == nil {
				err = c.End(Done, nil, "")
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range laneCount { // all use up their part, and do something more
		makes(fmt.Sprint("t", i), 8)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	open()
	t.Cleanup(func() { _ = l.Close() })
	left := func(token string) int {
		found, err := l.List(Query{Who: "x" + token})
		if err != nil {
			t.Fatal(err)
		}
		return len(found.Entries)
	}
	before := map[string]int{}
	for i := 1; i < laneCount; i++ {
		before[fmt.Sprint("t", i)] = left(fmt.Sprint("t", i))
	}
	makes("t0", 8)
	l.frequent.mu.Lock()
	for _, one := range l.frequent.list {
		if one.of == (caller{}) {
			t.Error("the files of a caller are nobody's after a start")
		}
	}
	l.frequent.mu.Unlock()
	for range 300 {
		c, err := l.Begin(Entry{Who: "xt0", Token: "t0", Call: "SyncHosts"})
		if err == nil {
			err = c.End(Done, nil, "")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for token, n := range before {
		if got := left(token); got != n {
			t.Errorf("of %s %d entries are left, before there were %d", token, got, n)
		}
	}
}

// What a call takes of its caller's part is what is written of it: also the objects that are named at its end.
func TestS137_ACallerPaysForWhatIsWritten(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	b := Bounds{File: 64 << 10, Changes: 8, Refusals: 1, Frequent: 2}
	l, err := Open(filepath.Join(t.TempDir(), "audit"), b, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	objects := make([]string, mostObjects)
	for i := range objects {
		objects[i] = strings.Repeat("<", longestText) // six bytes each in a line
	}
	longest := int64(0)
	for range 20 {
		at := l.changes.written
		c, err := l.Begin(Entry{Who: "bot", Token: "b1", Call: "ApplyDefinition"})
		if err == nil {
			err = c.End(Done, objects, "")
		}
		if err != nil {
			t.Fatal(err)
		}
		longest = max(longest, l.changes.written-at)
	}
	if most := int64(l.parts.most) + longest; l.changes.written > most {
		t.Errorf("the caller has written %d bytes among the changes of all, more than %d", l.changes.written, most)
	}
}

// The end of a call that began long ago goes to the newest file: in one that is called by its number it would be
// removed next, or, where that file is full, find no place.
func TestTheEndOfALongCallIsKept(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	l, err := Open(filepath.Join(t.TempDir(), "audit"), Bounds{File: 600, Changes: 3, Refusals: 1, Frequent: 1},
		func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	long, err := l.Begin(Entry{Who: "root", Call: "ApplyDefinition"})
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		c, err := l.Begin(Entry{Who: "root", Call: "SyncHosts"})
		if err == nil {
			err = c.End(Done, nil, strings.Repeat("x", 200))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := long.End(Failed, nil, strings.Repeat("y", longestText)); err != nil {
		t.Fatal(err)
	}
	found, err := l.List(Query{Result: Failed})
	if err != nil || len(found.Entries) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	c, err := l.Begin(Entry{Who: "root", Call: "SyncHosts"})
	if err == nil {
		err = c.End(Done, nil, "")
	}
	if found, _ := l.List(Query{Result: Failed}); err != nil || len(found.Entries) != 1 {
		t.Errorf("after the next call it is gone: %v", err)
	}
}
