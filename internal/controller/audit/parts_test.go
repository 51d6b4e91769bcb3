package audit

import (
	"fmt"
	"path/filepath"
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
	if err != nil || len(chains) != 3 || chains[2].Series != "frequent" || chains[2].Lines == 0 {
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
