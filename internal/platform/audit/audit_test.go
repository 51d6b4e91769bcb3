package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

func opened(t *testing.T, dir string, b Bounds) *Log {
	t.Helper()
	at := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	l, err := Open(dir, b, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(time.Second)
		return at
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func begin(t *testing.T, l *Log, e Entry) *Call {
	t.Helper()
	c, err := l.Begin(e)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func list(t *testing.T, l *Log, q Query) *Found {
	t.Helper()
	f, err := l.List(q)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// told is entries in short.
func told(f *Found) (lines []string) {
	for _, e := range f.Entries {
		lines = append(lines, fmt.Sprintf("%d %s %s %s %s", e.Number, e.Who, e.Call, strings.Join(e.Objects, ","),
			e.Result))
	}
	return lines
}

func TestLog_KeepsTheOrderAndWhatBecameOfEachCall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := opened(t, dir, DefaultBounds())
	first := begin(t, l, Entry{Who: "ann", Call: "ApplyDefinition", Objects: []string{"file=a.yaml"}})
	second := begin(t, l, Entry{Who: "bob", Call: "RemoveHost", Objects: []string{"name=esx1"}})
	if err := l.Refuse(Entry{Who: "eve", Call: "RemoveHost", Error: "needs admin"}); err != nil {
		t.Fatal(err)
	}
	if err := second.End(Failed, nil, "no such host"); err != nil {
		t.Fatal(err)
	}
	if err := first.End(Done, []string{"switch dvs changed"}, ""); err != nil {
		t.Fatal(err)
	}
	begin(t, l, Entry{Who: "ann", Call: "RotateRoot"})
	want := []string{"1 ann ApplyDefinition file=a.yaml,switch dvs changed done",
		"2 bob RemoveHost name=esx1 failed", "3 eve RemoveHost  refused", "4 ann RotateRoot  begun"}
	if got := told(list(t, l, Query{})); !reflect.DeepEqual(got, want) {
		t.Errorf("listed\n%s", strings.Join(got, "\n"))
	}
	for name, c := range map[string]struct {
		q    Query
		want []string
	}{
		"who":    {Query{Who: "ANN"}, []string{want[0], want[3]}},
		"call":   {Query{Call: "remove"}, []string{want[1], want[2]}},
		"object": {Query{Object: "dvs"}, want[:1]},
		"result": {Query{Result: Refused}, want[2:3]},
		"most":   {Query{Most: 2}, want[2:]},
		"since":  {Query{Since: time.Date(2026, 11, 23, 8, 0, 3, 0, time.UTC)}, want[2:]},
		"until":  {Query{Until: time.Date(2026, 11, 23, 8, 0, 3, 0, time.UTC)}, want[:2]},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(list(t, l, c.q)); !reflect.DeepEqual(got, c.want) {
				t.Errorf("listed\n%s", strings.Join(got, "\n"))
			}
		})
	}
	// After a restart the numbers go on, in the same file, whatever a loss of power left at its end.
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	path, _ := l.changes.paths()
	f, err := os.OpenFile(path[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"number":9,"resu`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	again := opened(t, dir, DefaultBounds())
	begin(t, again, Entry{Who: "ann", Call: "After"})
	found := list(t, again, Query{})
	if got := told(found); found.Damaged != 1 || got[len(got)-1] != "5 ann After  begun" {
		t.Errorf("after a restart, %d damaged:\n%s", found.Damaged, strings.Join(got, "\n"))
	}
	if paths, _ := again.changes.paths(); len(paths) != 1 {
		t.Errorf("files %v", paths)
	}
	for _, name := range []string{dir, path[0]} {
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", name, fi, err)
		}
	}
}

// However many refusals there are, no change is forgotten for them; the files stay within their bounds.
func TestLog_IsBounded(t *testing.T) {
	dir := t.TempDir()
	l := opened(t, dir, Bounds{File: 4 << 10, Changes: 3, Refusals: 2})
	first := begin(t, l, Entry{Who: "ann", Call: "First"})
	if err := first.End(Done, nil, ""); err != nil {
		t.Fatal(err)
	}
	for range 400 {
		if err := l.Refuse(Entry{Who: strings.Repeat("x", 1000), Error: strings.Repeat("ü", 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := told(list(t, l, Query{})); got[0] != "1 ann First  done" {
		t.Errorf("the oldest is %s", got[0])
	}
	many := make([]string, 1000)
	for range 200 {
		begin(t, l, Entry{Who: "ann", Call: "Many", Objects: many})
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 5 {
		t.Errorf("files %v (%v)", files, err)
	}
	for _, name := range files {
		if fi, err := os.Stat(name); err != nil || fi.Size() > 4<<10 {
			t.Errorf("%s has %d bytes (%v)", name, fi.Size(), err)
		}
	}
	found := list(t, l, Query{Most: 3})
	if len(found.Entries) != 3 || found.More == 0 || found.Entries[2].Number != 601 ||
		len(found.Entries[2].Objects) != mostObjects+1 {
		t.Errorf("listed %v and %d more", told(found), found.More)
	}
}

func TestLog_ManyAtATime(t *testing.T) {
	l := opened(t, t.TempDir(), Bounds{File: 2 << 10, Changes: 1000, Refusals: 2})
	var g sync.WaitGroup
	for n := range 16 {
		g.Go(func() {
			for range 20 {
				c, err := l.Begin(Entry{Who: fmt.Sprint(n), Call: "C"})
				if err == nil {
					err = c.End(Done, nil, "")
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	found := list(t, l, Query{Result: Done})
	if len(found.Entries) != 320 {
		t.Fatalf("%d entries", len(found.Entries))
	}
	for i, e := range found.Entries {
		if e.Number != int64(i+1) {
			t.Fatalf("entry %d has number %d", i, e.Number)
		}
	}
}

// Where the log can't be written nothing may begin.
func TestLog_SaysWhenItCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := opened(t, dir, DefaultBounds())
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Begin(Entry{Call: "C"}); err == nil || !strings.Contains(err.Error(), "nothing is changed") {
		t.Errorf("it begins: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	begin(t, l, Entry{Call: "C"})
}
