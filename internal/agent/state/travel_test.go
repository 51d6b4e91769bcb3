package state

import (
	"encoding/json"
	"testing"
	"time"

	"heddle/internal/agent/moves"
	"heddle/internal/plan"
)

// Records of moves survive a restart, and those that another version wrote differently are left out.
func TestS100_RecordsOfMovesAreReadWhateverWroteThem(t *testing.T) {
	store, err := Open(t.TempDir() + "/state")
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1000, 0).UTC()
	r := st.Travels.Add("vm", "net0", 4)
	r.Port = plan.PortID{Switch: "lab", Name: "p"}
	r.Look(true, 3, 0, 0)
	r.Here = moves.Begin("m1", 3, at)
	r.Away, _ = moves.Ordered(nil, moves.Order{Move: "m2", Host: "h", HostName: "esx1"}, moves.GuestRuns, at)
	r.Away.Sent = 17
	if err := store.Save(st); err != nil {
		t.Fatal(err)
	}
	again, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	got := again.Travels.Of("vm", "net0")
	if got == nil || got.Generation != 1 || !got.Serves || got.Here.Move != "m1" || got.Away.HostName != "esx1" {
		t.Fatalf("read: %+v", got)
	}
	if got.Away.Resumed(); got.Away.Sent < 17 {
		t.Errorf("copies go on at number %d, and 17 was given", got.Away.Sent)
	}
	for text, want := range map[string]int{
		`{"travels": {"not": "a list"}}`: 0,
		`{"travels": [null, 7, {"vm": 5}, {"vm": "v", "adapter": "a", "generation": 2, "new": {}}]}`:     1,
		`{"travels": [{"vm": "v", "adapter": "a", "here": {"wait": "x"}}, {"vm": "w", "adapter": "a"}]}`: 1,
	} {
		var s State
		if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Travels) != want {
			t.Errorf("%s: %d records, %v", text, len(s.Travels), err)
		}
	}
}

// The records of ports that are gone are bounded; those of ports that serve stay.
func TestS100_RecordsOfMovesAreBounded(t *testing.T) {
	var ts Travels
	ts.Add("serves", "net0", 3).Serves = true
	for _, vm := range []string{"a", "b", "c", "d"} {
		ts.Add(vm, "net0", 3)
	}
	if len(ts) != 3 || ts.Of("serves", "net0") == nil || ts.Of("d", "net0") == nil || ts.Of("a", "net0") != nil {
		t.Errorf("%d records", len(ts))
	}
	r := ts.Of("d", "net0")
	for range 20 {
		r.Shelve(moves.Track{})
	}
	if len(r.Past) != maxPast {
		t.Errorf("%d past moves", len(r.Past))
	}
}
