package probes

import (
	"log/slog"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// TestS179_OnlyHostsOfNoControllerAreAway: a host that another controller may have is not called away: while that one
// does not answer, and before it had the time to say whom it has.
func TestS179_OnlyHostsOfNoControllerAreAway(t *testing.T) {
	asked := 0
	h := New(Options{Log: slog.New(slog.DiscardHandler), Absent: func() map[string]bool {
		asked++
		return map[string]bool{"gone": true, "there": true, "mute": true}
	}, Others: func() []string { return []string{"other"} }})
	now := time.Unix(1_000_000, 0)
	h.Now = func() time.Time { return now }
	away := func(after time.Duration) (names []string) {
		now = now.Add(after)
		h.dirty = true
		h.look()
		for name, is := range h.away(now) {
			if is {
				names = append(names, name)
			}
		}
		return names
	}
	learn := func() {
		h.Learn("other", &controllerv1.ReadProbesHereResponse{Start: "x", Mute: []string{"mute"},
			Hosts: []*controllerv1.HostProbes{{Host: "id-there", Name: "there", Uplinks: uplinks(1)}}},
			func(string) bool { return true })
	}
	if got := append(away(0), away(time.Minute)...); got != nil {
		t.Errorf("%q are away before the other controller has said anything", got)
	}
	learn()
	if got := away(0); got != nil {
		t.Errorf("%q are away at once", got)
	}
	if got := away(linger); len(got) != 1 || got[0] != "gone" {
		t.Errorf("%q are away, want the one that nobody has", got)
	}
	h.Lost("other")
	if got := append(away(0), away(time.Minute)...); got != nil {
		t.Errorf("%q are away while the other controller does not answer", got)
	}
	before := asked
	if h.look(); asked != before {
		t.Error("the hosts are gone through although nothing has changed")
	}
}
