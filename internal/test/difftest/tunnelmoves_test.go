package difftest

import (
	"net/netip"
	"testing"
	"time"

	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// TestS155_AMACThatGoesToAnotherHostIsFollowedAtOnce: a MAC behind a learning port has sent a moment ago, and now a
// frame from it comes out of the tunnel. Frames for it leave by the tunnel from then on, in the model and in the
// kernel, and what it sends to all reaches the ports. When it comes back, it is behind its port again.
func TestS155_AMACThatGoesToAnotherHostIsFollowedAtOnce(t *testing.T) {
	k := kernel(t)
	cfg, err := spec.Parse("overlay.yaml", []byte(overlaySwitch))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	facts := plan.Facts{{Switch: "s", Name: spec.TunnelName}: {Up: true, MTU: 1600,
		Endpoints: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}
	for _, name := range []string{"c", "d", "f"} {
		facts[plan.PortID{Switch: "s", Name: name}] = plan.Fact{Up: true, MTU: 1500}
	}
	now := 10 * time.Second
	h := model.New(p, facts, now)
	if err := k.SetPlan(p, facts, now); err != nil {
		t.Fatal(err)
	}
	moving, all := plan.MAC{0, 0, 0x5e, 0, 1, 0x44}, plan.MAC{255, 255, 255, 255, 255, 255}
	frame := func(to, from plan.MAC) []byte {
		return append(append(append(to[:len(to):len(to)], from[:]...), 0x88, 0xb7), make([]byte, 46)...)
	}
	// to says where a frame from a port goes; "" stands for the tunnel as the sender.
	to := func(from string, f []byte) (names map[string]bool) {
		t.Helper()
		now += 100 * time.Millisecond
		id := plan.PortID{Switch: "s", Name: from}
		want, got := model.Result{}, Outcome{}
		if from == "" {
			want = h.FrameFrom("s", 10, f, now)
			got, err = outcome(k.FrameFrom("s", 10, f, now))
		} else {
			want = h.Frame(id, f, now)
			got, err = k.Frame(id, f, now)
		}
		k.last = now
		if err != nil {
			t.Fatal(err)
		}
		o := Outcome{Delivered: want.Delivered, Reason: want.Reason, Copies: want.Copies, Refused: want.Refused}
		if d := differ(o, got); d != "" {
			t.Fatalf("from %q: %s", from, d)
		}
		names = map[string]bool{}
		for _, c := range got.Copies {
			names[c.To.Name] = true
		}
		return names
	}
	for range 3 {
		to("f", frame(all, moving))
		if at := to("c", frame(moving, plan.MAC{2, 5: 3})); !at["f"] || at[spec.TunnelName] {
			t.Errorf("S17: frames for a MAC behind f go to %v", at)
		}
		to("f", frame(all, moving))
		if at := to("", frame(all, moving)); !at["c"] || !at["d"] {
			t.Errorf("S155: what the MAC sends from another host goes to %v", at)
		}
		if at := to("c", frame(moving, plan.MAC{2, 5: 3})); !at[spec.TunnelName] {
			t.Errorf("S155: frames for the MAC go to %v", at)
		}
	}
}
