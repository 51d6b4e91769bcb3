package rollout_test

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/controller/rollout"
)

// watched is a host over a minute, with so many drops a second and frames in each direction.
func watched(name string, drops, frames uint64) rollout.Watched {
	v := rollout.Vitals{Known: true, Start: "s", At: 1000, LinksUp: 2, Ports: 4}
	w := rollout.Watched{Name: name, Before: v, After: v}
	w.After.At, w.After.Sent, w.After.Handed = 1060, 60*frames, 60*frames
	w.After.Drops = map[string]uint64{"vlan": 60 * drops}
	return w
}

// but is a host with something else.
func but(w rollout.Watched, f func(before, after *rollout.Vitals)) rollout.Watched {
	f(&w.Before, &w.After)
	return w
}

// each are hosts with something else.
func each(list []rollout.Watched, f func(before, after *rollout.Vitals)) (out []rollout.Watched) {
	for _, w := range list {
		out = append(out, but(w, f))
	}
	return out
}

// What rises on hosts with the change alone is found; what rises on the others too has another cause, and what was so
// before is no news.
func TestRollout_WhatTheChangeDoesIsToldFromWhatHappensAnyway(t *testing.T) {
	usually := func(sent float64, drops float64) rollout.Usual {
		return rollout.Usual{Rates: rollout.Rates{Known: true, Sent: sent, Handed: sent, Ports: 4,
			Drops: map[string]float64{"vlan": drops}}, LinksUp: 2}
	}
	usual := map[string]rollout.Usual{}
	for _, name := range []string{"a", "b", "c", "d"} {
		usual[name] = usually(1000, 0)
	}
	was := func(u rollout.Usual) map[string]rollout.Usual { return map[string]rollout.Usual{"a": u} }
	fine := []rollout.Watched{watched("b", 0, 1000), watched("c", 1, 1000), watched("d", 0, 1000)}
	stormy := []rollout.Watched{watched("b", 80, 1000), watched("c", 90, 1000), watched("d", 100, 1000)}
	quiet := []rollout.Watched{watched("b", 0, 200), watched("c", 0, 210), watched("d", 0, 190)}
	away := func(_, after *rollout.Vitals) { after.Trouble = "it is not connected" }
	cut := func(_, after *rollout.Vitals) { after.LinksUp = 1 }
	shut := func(_, after *rollout.Vitals) { after.Shut = 2 }
	deaf := func(_, after *rollout.Vitals) { after.Handed = 0 }
	again := func(_, after *rollout.Vitals) { after.Start = "t" }
	left := func(_, after *rollout.Vitals) { after.Ports, after.Sent, after.Handed = 3, 0, 0 }
	silent := func(_, after *rollout.Vitals) { after.Known, after.Sent = false, 0 }
	a := watched("a", 0, 1000)
	for name, c := range map[string]struct {
		changed rollout.Watched
		others  []rollout.Watched
		usual   map[string]rollout.Usual
		want    string // "" for nothing
	}{
		"nothing happens":                     {a, fine, usual, ""},
		"drops":                               {watched("a", 100, 1000), fine, usual, "100 frames a second"},
		"a few drops":                         {watched("a", 4, 1000), fine, usual, ""},
		"a few drops of few frames":           {watched("a", 4, 4), fine, was(usually(4, 0)), "4 frames a second"},
		"drops everywhere":                    {watched("a", 100, 1000), stormy, usual, ""},
		"drops as before":                     {watched("a", 100, 1000), fine, was(usually(1000, 90)), ""},
		"no traffic":                          {but(watched("a", 0, 0), deaf), fine, usual, "a second, 1000 before"},
		"nothing is received":                 {but(a, deaf), fine, usual, "handed 0 frames a second, 1000 before"},
		"less traffic everywhere":             {watched("a", 0, 200), quiet, usual, ""},
		"never much traffic":                  {watched("a", 0, 0), fine, was(usually(10, 0)), ""},
		"a host is away":                      {but(a, away), fine, usual, "it is not connected"},
		"all hosts are away":                  {but(a, away), each(fine, away), usual, ""},
		"it was away before":                  {but(a, away), fine, was(rollout.Usual{Trouble: "it was away"}), ""},
		"an uplink":                           {but(a, cut), fine, usual, "1 of its uplinks went down"},
		"an uplink on every host":             {but(a, cut), each(fine, cut), usual, ""},
		"ports":                               {but(a, shut), fine, usual, "2 of its ports are blocked"},
		"ports on every host":                 {but(a, shut), each(fine, shut), usual, ""},
		"drops where all have the change":     {watched("a", 100, 1000), nil, usual, "dropped for vlan"},
		"a host that has begun to count anew": {but(watched("a", 100, 0), again), fine, usual, ""},
		"a guest that has left":               {but(a, left), fine, usual, ""},
		"an agent that can't say":             {but(a, silent), fine, usual, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found, _ := rollout.Compare([]rollout.Watched{c.changed}, c.others, c.usual, nil)
			if c.want == "" && len(found) == 0 {
				return
			}
			if len(found) == 0 || c.want == "" || !strings.Contains(found[len(found)-1].What, c.want) {
				t.Errorf("found %v, want %q", found, c.want)
			}
		})
	}
}

// In the last stage there are no hosts without the change: that they were quieter in the stage before counts still.
func TestRollout_WhatWasSeenLastOfHostsWithoutTheChangeCounts(t *testing.T) {
	usual := map[string]rollout.Usual{}
	for _, name := range []string{"a", "b", "c"} {
		usual[name] = rollout.Usual{Rates: rollout.Rates{Known: true, Sent: 1000, Handed: 1000, Ports: 4}, LinksUp: 2}
	}
	a := []rollout.Watched{watched("a", 0, 100)}
	found, calm := rollout.Compare(a, []rollout.Watched{watched("b", 0, 100), watched("c", 0, 110)}, usual, nil)
	if len(found) > 0 || calm.Sent > 0.2 {
		t.Fatalf("where all are quieter: %v, %v", found, calm)
	}
	if found, again := rollout.Compare(a, nil, usual, calm); len(found) > 0 || *again != *calm {
		t.Errorf("in the stage after: %v, %v", found, again)
	}
	if found, _ := rollout.Compare(a, nil, usual, nil); len(found) != 2 {
		t.Errorf("where nothing is known of others: %v", found)
	}
}

// Rates are compared over the newest part of a stage, and not before it was seen whole: an old calm does not hide a
// fault, and one look is none.
func TestWatch_LooksAtTheNewestPart(t *testing.T) {
	at := time.Unix(1000, 0)
	hosts := func(second int, drops uint64) map[string]rollout.Vitals {
		return map[string]rollout.Vitals{"a": {Known: true, At: float64(second), Sent: 1000 * uint64(second),
			Drops: map[string]uint64{"vlan": drops}}, "b": {Known: true, At: float64(second)}}
	}
	w := rollout.NewWatch(20*time.Second, nil, nil)
	if _, ok := w.Usual([]string{"a"}, time.Second); ok {
		t.Fatal("what is usual is known of nothing")
	}
	for s := range 11 {
		w.Add(at.Add(time.Duration(s)*time.Second), hosts(s, 0))
	}
	usual, ok := w.Usual([]string{"a", "b", "away"}, 10*time.Second)
	if u := usual["a"]; !ok || len(usual) != 2 || u.Sent != 1000 || len(u.Drops) != 0 {
		t.Fatalf("usual is %+v", usual)
	}
	w.Knows(usual)
	look := func(second int, drops uint64) ([]rollout.Finding, bool) {
		w.Add(at.Add(time.Duration(second)*time.Second), hosts(second, drops))
		return w.Found([]string{"a"}, []string{"b"})
	}
	for s := 20; s < 30; s++ {
		if found, looked := look(s, 0); looked || len(found) > 0 {
			t.Fatalf("after %d s: %v, %v", s-20, looked, found)
		}
	}
	for s := 30; s < 3600; s++ {
		if found, looked := look(s, 0); !looked || len(found) > 0 {
			t.Fatalf("after %d s: %v, %v", s-20, looked, found)
		}
	}
	if found, _ := look(3600, 300); len(found) != 1 {
		t.Errorf("300 drops in a second after an hour: %v", found)
	}
	w.Anew()
	if _, looked := w.Found([]string{"a"}, nil); looked {
		t.Error("it has looked before the first look")
	}
}
