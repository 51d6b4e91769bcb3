package difftest

import (
	"net/netip"
	"testing"
	"time"

	"heddle/internal/spec"
)

// TestS190_WhatTheTunnelKnowsIsForTheTunnelAlone: the kernel program and the model send unicast to a station of another
// host by the tunnel alone, and to learning ports again once it is not known any more where that is.
func TestS190_WhatTheTunnelKnowsIsForTheTunnelAlone(t *testing.T) {
	w := newWholes(t, spec.ReplicateHead)
	defer w.close(t)
	r := &wholeRun{wholes: w, plan: w.plans[0]}
	if err := w.change(w.plans[0], crossingFacts()[0], r.reaches()[0]); err != nil {
		t.Fatal(err)
	}
	station := stationMAC(40)
	frame := func(from, to [6]byte) []byte {
		return fit(append(append(append([]byte{}, to[:]...), from[:]...), 0x88, 0xb5))
	}
	sends := func(what string, port int, to [6]byte, outside bool) {
		t.Helper()
		before := w.seen["known outside: true"]
		d, err := w.frame(r.port(port), frame(r.port(port).InitialMAC, to))
		if err != nil || d != "" {
			t.Fatalf("%s: %v\n%s", what, err, d)
		}
		if got := w.seen["known outside: true"] > before; got != outside {
			t.Errorf("%s: known outside: %v, want %v", what, got, outside)
		}
	}
	arrives := func() {
		t.Helper()
		all := frame(station, [6]byte{255, 255, 255, 255, 255, 255})
		if d, err := w.arrive(netip.MustParseAddr("198.51.100.6"), 10, all); err != nil || d != "" {
			t.Fatalf("it arrives: %v\n%s", err, d)
		}
	}
	sends("unknown", 0, station, false)
	arrives()
	sends("heard from another host", 0, station, true)
	w.now += 11 * time.Minute
	sends("silent for long", 0, station, false)
	arrives()
	nested := r.port(4)
	if d, err := w.frame(nested, frame(station, nested.InitialMAC)); err != nil || d != "" {
		t.Fatalf("heard here: %v\n%s", err, d)
	}
	if d, err := w.tables(); err != nil || d != "" {
		t.Errorf("heard here: %v\n%s", err, d)
	}
	if shown := w.model.Crossing("s").Tables().Shown; len(shown) != 0 {
		t.Errorf("it is heard here, and known behind %v", shown)
	}
}
