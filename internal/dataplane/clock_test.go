package dataplane

import (
	"testing"
	"time"

	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// clockConfig has two guests behind which other MACs live, and an uplink that unknown destinations would leave by.
const clockConfig = `switches:
  - name: s
    kind: distributed
    uplinks: [{name: u, device: eth0}]
    defaults: {security: {forgedTransmits: accept, macLearning: {enabled: true}}}
    portGroups: [{name: g}]
ports:
  - {name: a, switch: s, portGroup: g, device: tap0, mac: "02:00:00:00:00:0a"}
  - {name: b, switch: s, portGroup: g, device: tap1, mac: "02:00:00:00:00:0b"}
`

// CPUs read the clock one after the other, but may use the value later: a frame can find an entry that another CPU has
// stamped with a later tick than the one that this frame has read. Then no time has passed. If the difference wrapped
// around to a very long time, the entry would count as expired, and the frame would be flooded to the uplink.
func TestS17_S92_AnEntryFromATickAheadIsAlive(t *testing.T) {
	testkit.Root(t)
	cfg, err := spec.Parse("clock.yaml", []byte(clockConfig))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRecorder()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a, b, u := plan.PortID{Switch: "s", Name: "a"}, plan.PortID{Switch: "s", Name: "b"}, plan.PortID{Switch: "s",
		Name: "u"}
	facts := plan.Facts{a: {Up: true, MTU: 1500}, b: {Up: true, MTU: 1500},
		u: {Up: true, MTU: 1500, DeviceMAC: plan.MAC{2, 0, 0, 0, 0, 0xee}}}
	const later = 5 * time.Second
	const earlier = later - time.Millisecond // one tick
	must := func(_ *Recorded, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(nil, r.SetPlan(p, facts, earlier))
	inner, far := plan.MAC{2, 0, 0, 0, 1, 0xb}, plan.MAC{2, 0, 0, 0, 1, 0xc}
	frame := func(dst, src plan.MAC) []byte {
		f := make([]byte, 60)
		copy(f, dst[:])
		copy(f[6:], src[:])
		f[12], f[13] = 0x88, 0xb5
		return f
	}
	must(r.Frame(b, frame(far, inner), later))
	must(nil, r.Sweep(earlier))
	// heard from outside: if the MAC had been silent for a second, it would have moved
	must(r.Frame(u, frame(far, inner), earlier))
	got, err := r.Frame(a, frame(inner, far), earlier)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Copies) != 1 || got.Copies[0].To != b {
		t.Errorf("a frame to a MAC heard a tick ahead went to %+v, want to port b alone", got.Copies)
	}
}
