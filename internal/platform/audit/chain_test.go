package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// verified checks the changes of a log in a directory, as a controller that was started anew does.
func verified(t *testing.T, dir, head string) Chain {
	t.Helper()
	chains, err := opened(t, dir, DefaultBounds()).Verify(head)
	if err != nil {
		t.Fatal(err)
	}
	return chains[0]
}

// written is a log with entries in several files, which was closed and opened between.
func written(t *testing.T) (dir string, files []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "audit")
	for run := range 3 {
		l := opened(t, dir, Bounds{File: 2000, Changes: 50, Refusals: 2})
		for i := range 10 {
			c := begin(t, l, Entry{Who: "ann", Call: "ApplyDefinition", Objects: []string{fmt.Sprint(run, i)}})
			if err := c.End(Done, nil, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "changes-*.jsonl"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	slices.Sort(files)
	return dir, files
}

func TestChain_ALogAsItWasWrittenHasNoFault(t *testing.T) {
	dir, files := written(t)
	c := verified(t, dir, "")
	if len(c.Faults) > 0 || c.Lines != 60 || c.Unchained != 0 || c.Head == "" || c.Number != 30 || c.Known {
		t.Errorf("%+v", c)
	}
	if err := os.Remove(files[0]); err != nil { // as for age
		t.Fatal(err)
	}
	if again := verified(t, dir, c.Head); len(again.Faults) > 0 || again.Head != c.Head || !again.Known {
		t.Errorf("without the oldest file: %+v", again)
	}
}

func TestChain_WhatWasChangedByHandIsFound(t *testing.T) {
	edit := func(path string, f func(lines [][]byte) [][]byte) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := f(bytes.SplitAfter(b, []byte("\n")))
		if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]func(dir string, files []string){
		"a word": func(_ string, files []string) {
			edit(files[1], func(l [][]byte) [][]byte {
				l[1] = bytes.Replace(l[1], []byte(`"ann"`), []byte(`"eve"`), 1)
				l[2] = bytes.Replace(l[2], []byte(`"ann"`), []byte(`"eve"`), 1)
				return l
			})
		},
		"the first line": func(_ string, files []string) {
			edit(files[0], func(l [][]byte) [][]byte {
				l[0] = bytes.Replace(l[0], []byte(`"ann"`), []byte(`"eve"`), 1)
				return l
			})
		},
		"a line less": func(_ string, files []string) {
			edit(files[1], func(l [][]byte) [][]byte { return slices.Delete(l, 1, 2) })
		},
		"a line twice": func(_ string, files []string) {
			edit(files[1], func(l [][]byte) [][]byte { return slices.Insert(l, 1, l[0]) })
		},
		"two lines exchanged": func(_ string, files []string) {
			edit(files[1], func(l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l })
		},
		"a line without a hash": func(_ string, files []string) {
			edit(files[1], func(l [][]byte) [][]byte {
				return slices.Insert(l, 1, []byte(`{"number":99,"result":"done"}`+"\n"))
			})
		},
		"a file less": func(_ string, files []string) {
			if err := os.Remove(files[1]); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, files := written(t)
			f(dir, files)
			if c := verified(t, dir, ""); len(c.Faults) == 0 {
				t.Errorf("no fault: %+v", c)
			}
		})
	}
}

// What was cut off at the end can be seen only by who knows the head.
func TestChain_ACutLogLacksItsHead(t *testing.T) {
	dir, files := written(t)
	head := verified(t, dir, "").Head
	if err := os.Remove(files[len(files)-1]); err != nil {
		t.Fatal(err)
	}
	if c := verified(t, dir, head); len(c.Faults) > 0 || c.Known {
		t.Errorf("%+v", c)
	}
}

// Lines of an earlier version stand before the chain.
func TestChain_BeginsBehindWhatAnEarlierVersionWrote(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := `{"number":1,"at":"2026-11-01T00:00:00Z","who":"ann","call":"RemoveHost","result":"begun"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "changes-0000000000000001.jsonl"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	l := opened(t, dir, DefaultBounds())
	begin(t, l, Entry{Who: "ann", Call: "RotateRoot"})
	if c := verified(t, dir, ""); len(c.Faults) > 0 || c.Lines != 2 || c.Unchained != 1 || c.Number != 2 {
		t.Errorf("%+v", c)
	}
	if got := told(list(t, l, Query{})); len(got) != 2 {
		t.Errorf("listed\n%s", strings.Join(got, "\n"))
	}
}

// Calls of several callers at a time make one chain.
func TestChain_IsOneForAllCallers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	l := opened(t, dir, Bounds{File: 4000, Changes: 50, Refusals: 2})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				if c, err := l.Begin(Entry{Who: "ann", Call: "ApplyDefinition"}); err != nil || c.End(Done, nil,
					"") != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if c := verified(t, dir, ""); len(c.Faults) > 0 || c.Lines != 320 {
		t.Errorf("%+v", c)
	}
}
