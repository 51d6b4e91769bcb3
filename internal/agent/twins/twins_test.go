package twins

import (
	"testing"
	"time"

	"heddle/internal/plan"
)

// TestS196_AMACThatSpeaksOutsideAgainAndAgainIsTold: not one that does so for a moment, as that of a guest that moves.
func TestS196_AMACThatSpeaksOutsideAgainAndAgainIsTold(t *testing.T) {
	var l Ledger
	port, mac, start := plan.PortID{Switch: "s", Name: "vm1"}, plan.MAC{2, 5: 1}, time.Unix(1e9, 0)
	for _, c := range []struct {
		after time.Duration
		tell  bool
	}{{0, false}, {time.Second, false}, {4 * time.Second, false}, {6 * time.Second, true}, {7 * time.Second, false},
		{62 * time.Second, false}, {67 * time.Second, true}, {20 * time.Minute, false},
		{20*time.Minute + 4*time.Second, false}, {20*time.Minute + 5*time.Second, true}} {
		if got := l.Heard(port, mac, start.Add(c.after)); got != c.tell {
			t.Errorf("after %v: told %v", c.after, got)
		}
	}
	if l.Heard(port, plan.MAC{2, 5: 2}, start.Add(21*time.Minute)) {
		t.Error("another MAC of the port is told at once")
	}
	for n := range 2 * most { // a guest that changes its MAC all the time
		l.Heard(port, plan.MAC{2, 1, 0, 0, byte(n >> 8), byte(n)}, start)
	}
	if len(l.of) > most {
		t.Errorf("%d are remembered", len(l.of))
	}
}

// TestS196_SingleFramesFarApartAreNoStation: it has to go on speaking for 5 s, with no long silence between.
func TestS196_SingleFramesFarApartAreNoStation(t *testing.T) {
	port, mac, start := plan.PortID{Switch: "s", Name: "vm1"}, plan.MAC{2, 5: 1}, time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		at   []time.Duration
		tell bool // at the last one
	}{
		"two, nine minutes apart":    {[]time.Duration{0, 9 * time.Minute}, false},
		"three, a minute apart each": {[]time.Duration{0, time.Minute, 2 * time.Minute}, false},
		"two, before it goes on": {[]time.Duration{0, time.Minute, time.Minute + 3*time.Second,
			time.Minute + 6*time.Second}, true},
		"one every three seconds":    {[]time.Duration{0, 3 * time.Second, 6 * time.Second}, true},
		"as silent as it may be":     {[]time.Duration{0, silent}, true},
		"a moment more silent":       {[]time.Duration{0, silent + 1}, false},
		"told, and two stray frames": {[]time.Duration{0, 6 * time.Second, 3 * time.Minute, 5 * time.Minute}, false},
	} {
		var l Ledger
		var told bool
		for _, at := range c.at {
			told = l.Heard(port, mac, start.Add(at))
		}
		if told != c.tell {
			t.Errorf("%s: told %v", name, told)
		}
	}
}

// TestS196_AStationIsToldBesideAGuestThatChangesItsMAC: what is remembered is full, and the oldest goes.
func TestS196_AStationIsToldBesideAGuestThatChangesItsMAC(t *testing.T) {
	var l Ledger
	port, other := plan.PortID{Switch: "s", Name: "vm1"}, plan.PortID{Switch: "s", Name: "vm2"}
	mac, at := plan.MAC{2, 5: 1}, time.Unix(1e9, 0)
	var told bool
	for second := range 7 {
		told = l.Heard(port, mac, at.Add(time.Duration(second)*time.Second)) || told
		for n := range most - 1 {
			l.Heard(other, plan.MAC{2, 1, byte(second), 0, byte(n >> 8), byte(n)},
				at.Add(time.Duration(second)*time.Second+time.Millisecond))
		}
	}
	if !told || len(l.of) > most {
		t.Errorf("told %v, %d are remembered", told, len(l.of))
	}
}
