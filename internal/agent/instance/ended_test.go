package instance

import (
	"slices"
	"testing"
)

func TestS151_OnlyNotesThatWereActedOnAreRemoved(t *testing.T) {
	p := Paths{Run: t.TempDir()}
	note := func(uuid string, ended bool) {
		t.Helper()
		if err := p.NoteEnded("a", uuid, ended); err != nil {
			t.Fatal(err)
		}
	}
	noted := func(want ...string) []string {
		t.Helper()
		got, err := p.NotedEnded("a")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("noted %q, want %q (%v)", got, want, err)
		}
		return got
	}
	noted()
	note("1", false)
	note("1", true)
	note("2", true)
	note("2", false) // it was started again
	acted := noted("1")
	note("3", true)
	if err := p.DropEnded("a", acted); err != nil {
		t.Fatal(err)
	}
	noted("3")
	if err := p.DropEnded("a", acted); err != nil {
		t.Errorf("notes that are gone: %v", err)
	}
}
