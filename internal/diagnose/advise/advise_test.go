package advise

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heddle/internal/api"
	"heddle/internal/observe/event"
)

func TestWrongIsToldBeforeNotesAndTheSameOfManyPortsIsCutShort(t *testing.T) {
	text := sound
	for i := range 30 {
		text += fmt.Sprintf("- {name: x%d, switch: lab, portGroup: web, device: px%d, mac: \"02:00:00:00:02:%02x\"}\n",
			i, i, i)
	}
	r := newRig(t, text)
	r.dropped("a", "port-blocked", 1)
	for i := range 30 {
		r.dropped(fmt.Sprint("x", i), "guest-tagged", 1)
	}
	a := Examine(r.Snapshot)
	if len(a.Findings) != mostOfARule+1 || a.More["guest-tags"] != 30-mostOfARule ||
		a.Findings[0].Rule != "guest-tags" || a.Findings[mostOfARule].Rule != "blocked-sender" || a.Healthy() {
		t.Errorf("%d findings, more %v, healthy %v", len(a.Findings), a.More, a.Healthy())
	}
	r = newRig(t, sound)
	r.dropped("a", "port-blocked", 1)
	if a := Examine(r.Snapshot); len(a.Findings) != 1 || !a.Healthy() {
		t.Errorf("a note alone: %+v", a)
	}
}

func TestAForgedAddressIsNamedWhereItWasTold(t *testing.T) {
	r := newRig(t, sound)
	r.dropped("a", "forged-transmit", 1)
	r.Events = []event.Event{{Kind: event.Violation, Switch: "lab", Port: "a", MAC: "02:00:00:00:00:55", Time: r.Now}}
	if f := r.found("forged-transmits"); len(f) != 1 || !strings.Contains(f[0].Sign, "02:00:00:00:00:55") {
		t.Errorf("%+v", f)
	}
}

func TestAWindowCountsWhatCameInIt(t *testing.T) {
	read := func(in, held, forged uint64) []api.Stats {
		return []api.Stats{{Switch: "lab", Name: "a", Counters: []api.Counter{{Name: "packetsInUnicast", Value: in}},
			Extra: []api.Counter{{Name: macsLearned, Value: held}},
			Drops: []api.ReasonNo{{Reason: "forged-transmit", Value: forged}}, Device: &api.DeviceLosses{Device: "pa",
				RxErrors: in}}}
	}
	got := Since(read(100, 7, 3), read(150, 8, 3))
	want := []api.Stats{{Switch: "lab", Name: "a", Counters: []api.Counter{{Name: "packetsInUnicast", Value: 50}},
		Extra:  []api.Counter{{Name: macsLearned, Value: 8}},
		Device: &api.DeviceLosses{Device: "pa", RxErrors: 50}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(read(20, 1, 1), Since(read(100, 7, 3), read(20, 1, 1))); d != "" {
		t.Errorf("counters that began anew: %s", d)
	}
	if d := cmp.Diff(read(20, 1, 1), Since(nil, read(20, 1, 1))); d != "" {
		t.Errorf("a port that came meanwhile: %s", d)
	}
	r := newRig(t, sound)
	r.Window = 10 * time.Second
	r.dropped("a", "guest-tagged", 2)
	if f := r.found("guest-tags"); len(f) != 1 || !strings.Contains(f[0].Sign, "in the last 10s") {
		t.Errorf("%+v", f)
	}
}

func TestMany(t *testing.T) {
	for _, c := range []struct {
		n          uint64
		what, want string
	}{{0, "frame", "0 frames"}, {1, "copy", "1 copy"}, {2, "copy", "2 copies"}, {999, "frame", "999 frames"},
		{1000, "frame", "1,000 frames"}, {12345678, "frame", "12,345,678 frames"}} {
		if got := many(c.n, c.what); got != c.want {
			t.Errorf("%d %s: %q", c.n, c.what, got)
		}
	}
}
