package accounts

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"heddle/internal/abi"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

func TestS94_AtRestTheAccountsAreExact(t *testing.T) {
	for _, c := range []struct {
		name  string
		books Books
		want  State
		fault Fault
	}{
		{"nothing", Books{}, Exact, ""},
		{"balanced", Books{Received: 10, Delivered: 7, Dropped: 3}, Exact, ""},
		{"one under way", Books{Received: 11, Delivered: 7, Dropped: 3}, Open, ""},
		{"lost", Books{Received: 15, Delivered: 7, Dropped: 3}, Broken, FateMissing},
		{"two fates", Books{Received: 9, Delivered: 7, Dropped: 3}, Broken, FrameMissing},
		{"host's without a cause", Books{Host: 1, HostFates: 2}, Broken, HostFrameMissing},
		{"more from uplinks than at all", Books{FromPnic: 100, Out: 99}, Broken, BytesMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, ok := Judge(c.books, c.books, 2)
			if !ok || v.State != c.want || v.FaultCode != c.fault || (v.Fault != "") != (c.fault != "") {
				t.Errorf("%+v, %v; want %s %q", v, ok, c.want, c.fault)
			}
		})
	}
	if _, ok := Judge(Books{Received: 2, Delivered: 2}, Books{Received: 1, Delivered: 1}, 2); ok {
		t.Error("counters that began anew were judged")
	}
}

// torn is a reading whose counters are each of an instant of their own, between from and to steps of a history in which
// some frames have their fate a while after they were received, and leak of them never.
func torn(t *rapid.T, from, to, leak int) Books {
	at := func(name string) int { return rapid.IntRange(from, to).Draw(t, name) }
	fated := func(n int) int { return max(0, n-1-leak) } // one is under way all the time
	return Books{Received: uint64(at("received")), Delivered: uint64(fated(at("delivered")) / 2),
		Dropped: uint64((fated(at("dropped")) + 1) / 2)}
}

func TestS94_UnderTrafficSoundAccountsAreNeverCalledBrokenAndALeakAlwaysShows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, 1000).Draw(t, "from")
		mid := rapid.IntRange(from, from+500).Draw(t, "mid")
		to := rapid.IntRange(mid, mid+500).Draw(t, "to")
		first, second := torn(t, from, mid, 0), torn(t, mid, to, 0)
		if v, ok := Judge(first, second, 1); !ok || v.State == Broken {
			t.Fatalf("sound accounts: %+v, %+v: %+v %v", first, second, v, ok)
		}
		// More frames are missing than passed between the readings: they cannot hide.
		leak := to - from + 3
		lost, alsoLost := torn(t, from+leak, mid+leak, leak), torn(t, mid+leak, to+leak, leak)
		if v, ok := Judge(lost, alsoLost, 1); ok && v.State != Broken {
			t.Fatalf("%d frames lost: %+v, %+v: %+v", leak, lost, alsoLost, v)
		}
	})
}

// busy counts one frame more at every reading, until it has been read often enough.
type busy struct{ reads, until uint64 }

func (b *busy) Read(plan.PortID) (observe.Counters, error) {
	b.reads++
	n := min(b.reads, b.until)
	c := observe.Counters{Delivered: n - 1, Drops: map[abi.Reason]uint64{abi.ReasonPortBlocked: 1}}
	c.PacketsIn[abi.ClassUnicast] = n
	return c, nil
}

func TestS94_ACheckComesBackToPortsWithTraffic(t *testing.T) {
	for until, want := range map[uint64]State{1: Exact, 7: Exact, 1000: Open} {
		all, err := Check(context.Background(), &busy{until: until}, []plan.PortID{{Switch: "s", Name: "p"}})
		if err != nil {
			t.Fatal(err)
		}
		if all[0].State != want || all[0].Most-all[0].Least > 2 {
			t.Errorf("busy until %d: %+v", until, all[0])
		}
	}
}
