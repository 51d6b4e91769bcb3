package meter

import (
	"math/rand/v2"
	"testing"
	"time"

	"heddle/internal/flow"
)

func TestRoundsFollowTheRateOfNewFlows(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		before, took time.Duration
		begun        int
		want         time.Duration
	}{
		"no flow begins":                    {1000 * ms, 1000 * ms, 0, 1000 * ms},
		"few flows begin":                   {1000 * ms, 1000 * ms, 4000, 1000 * ms},
		"many flows begin":                  {1000 * ms, 1000 * ms, 40_960, 100 * ms},
		"the rate stays":                    {100 * ms, 100 * ms, 4096, 100 * ms},
		"the drain was late":                {100 * ms, 200 * ms, 8192, 100 * ms},
		"the rate rises a little":           {100 * ms, 100 * ms, 5120, 80 * ms},
		"the rate falls a little":           {100 * ms, 100 * ms, 3277, 124992371 * time.Nanosecond},
		"the flows stop":                    {100 * ms, 100 * ms, 0, 200 * ms},
		"the flows have stopped for longer": {800 * ms, 800 * ms, 0, 1000 * ms},
		"more flows than rounds can follow": {1000 * ms, 1000 * ms, 5_000_000, 50 * ms},
		"the drain came at once":            {50 * ms, 0, 1, 50 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nextRound(time.Second, c.before, c.took, c.begun); got != c.want {
				t.Errorf("%s: the next round is of %v instead of %v", name, got, c.want)
			}
		})
	}
	if got := nextRound(10*ms, 10*ms, 10*ms, 1<<20); got != 10*ms {
		t.Errorf("a round of %v where they are of 10 ms at most", got)
	}
}

// With flows that begin at a steady rate, rounds have a steady length; within five rounds after the last one begins,
// the length is the usual one again.
func TestRoundsDoNotGoUpAndDown(t *testing.T) {
	for _, rate := range []int{100, 4000, 5000, 35_000, 80_000, 500_000} {
		var all []time.Duration
		length := time.Second
		for range 50 {
			begun := int(length.Seconds() * float64(rate) * (0.95 + rand.Float64()/10))
			length = nextRound(time.Second, length, length, begun)
			all = append(all, length)
		}
		want := min(max(time.Duration(perRound*int(time.Second)/rate), shortestRound), time.Second)
		for _, l := range all[10:] {
			if l < want*9/10 || l > want*11/10 {
				t.Errorf("%d flows a second: a round of %v instead of %v", rate, l, want)
			}
		}
		for range 5 {
			length = nextRound(time.Second, length, length, 0)
		}
		if length != time.Second {
			t.Errorf("%d flows a second: a round of %v when no flow has begun in five", rate, length)
		}
	}
}

// follow steps when Step asks for it, for that long, and returns how often the source was drained and the exporter
// ticked.
func (w *world) follow(d time.Duration, each func()) (drains, ticks int) {
	w.t.Helper()
	before := w.m.rounds
	for end := w.now.Up + d; w.now.Up < end; {
		each()
		w.sink.left, w.sink.state = w.sink.budget, State{}
		wait, err := w.m.Step(w.now)
		if err != nil {
			w.t.Fatal(err)
		}
		if w.m.rounds.drained != before.drained {
			drains++
			w.m.switches["lab"].table.checkBounds(w.t.Fatalf)
		}
		if w.sink.state.Points != nil {
			ticks++
		}
		before = w.m.rounds
		w.pass(max(wait, time.Millisecond))
	}
	return drains, ticks
}

// While many short flows come, the source is drained more often, but what is done once a second is not done more often;
// flows that last and are counted again and again change nothing. What was counted is reported, to the packet.
func TestShortRoundsAccountForEverything(t *testing.T) {
	w := newWorld(t, Settings{ActiveTimeout: time.Minute, IdleTimeout: 15 * time.Second, MaxFlows: 200_000})
	w.kernel.size = 500
	want, begun, at := map[flow.Key]uint64{}, 0, w.now.Up
	send := func(k flow.Key, flags uint16) {
		ms := w.now.Wall.UnixMilli()
		w.kernel.count(k, flow.Counts{Packets: 3, Bytes: 120, FrameBytes: 160, First: ms, Last: ms, TCPFlags: flags})
		want[k] += 3
	}
	short := func() { // 40,000 flows a second
		for ; at < w.now.Up; at += time.Second / 40_000 {
			k := key(uint16(begun))
			k.DstPort = uint16(1 + begun>>16)
			send(k, 0x12|finFlag)
			begun++
		}
	}
	long := func() {
		for p := range 6000 {
			k := key(uint16(p))
			k.DstPort = 0
			send(k, 0x10)
		}
	}
	long()
	drains, ticks := w.follow(5*time.Second, long)
	if drains > 7 || ticks < 4 || ticks > 6 {
		t.Errorf("flows that last: %d drains and %d ticks in 5 s", drains, ticks)
	}
	at = w.now.Up
	drains, ticks = w.follow(5*time.Second, short)
	if drains < 35 || drains > 60 || ticks < 4 || ticks > 6 {
		t.Errorf("flows that begin all the time: %d drains and %d ticks in 5 s", drains, ticks)
	}
	w.kill() // in a short round
	w.follow(2*time.Second, func() { at = w.now.Up })
	drains, _ = w.follow(30*time.Second, func() {})
	if drains > 34 {
		t.Errorf("no flow begins: %d drains in 30 s", drains)
	}
	w.run(20 * time.Second)
	to := told{}
	for _, r := range w.take() {
		to.add(r)
	}
	got := to.perKey()
	for k, n := range want {
		if got[k] != n {
			t.Fatalf("flow %d, %d: %d packets are told of instead of %d", k.SrcPort, k.DstPort, got[k], n)
		}
	}
	if begun < 150_000 || len(got) != len(want) || w.m.Statistics()["lab"].Flows != 0 {
		t.Errorf("%d flows, %d are told of, %d counted", begun, len(got), len(want))
	}
}

// An exporter that accepts nothing is asked less and less often, one that accepts some records soon again.
func TestExporterThatTakesNothingIsAskedLessOften(t *testing.T) {
	pause := time.Duration(0)
	for _, want := range []time.Duration{8, 16, 32, 50, 50} {
		if pause = nextPause(pause, 0); pause != want*time.Millisecond {
			t.Errorf("a pause of %v instead of %d ms", pause, want)
		}
	}
	if pause = nextPause(pause, 1); pause != retry {
		t.Errorf("a pause of %v behind a record", pause)
	}
}

// The agent's table is full and new flows still come faster than the kernel can store in a second: rounds become
// shorter even so, and the kernel loses only a little.
func TestRoundsAreShortWhileTheTableIsFull(t *testing.T) {
	const perSecond, kernelRoom = 20_000, 6250
	w := newWorld(t, Settings{ActiveTimeout: time.Minute, IdleTimeout: 15 * time.Second, MaxFlows: 10_000})
	w.kernel.size = 500
	begun, ignored, at := 0, 0, w.now.Up
	w.follow(10*time.Second, func() {
		for ; at < w.now.Up; at += time.Second / perSecond {
			if len(w.kernel.counting) >= kernelRoom {
				ignored++
			} else {
				k := key(uint16(begun))
				k.DstPort = uint16(1 + begun>>16)
				w.send(k, 1)
			}
			begun++
		}
	})
	st := w.m.Statistics()["lab"]
	if st.Flows != 10_000 || begun < 190_000 || int(st.Folded.Packets) < begun*3/4 {
		t.Errorf("of %d flows %d are recorded, the kernel ignored %d; the table has %d", begun, st.Folded.Packets,
			ignored, st.Flows)
	}
	if int(st.Folded.Packets)+ignored+len(w.kernel.counting) != begun {
		t.Errorf("%d flows began; %d are recorded, %d ignored, %d in the kernel", begun, st.Folded.Packets, ignored,
			len(w.kernel.counting))
	}
}

// Flows that last but do not fit do not begin with every drain: they are reported once a second as before.
func TestFlowsThatLastWithoutRoomDoNotShortenRounds(t *testing.T) {
	w := newWorld(t, Settings{ActiveTimeout: time.Minute, IdleTimeout: 15 * time.Second, MaxFlows: 100})
	w.kernel.size = 500
	long := func() {
		for p := range 8000 {
			w.send(key(uint16(p)), 1)
		}
	}
	w.follow(4*time.Second, long) // they begin
	drains, _ := w.follow(10*time.Second, long)
	if drains > 12 {
		t.Errorf("flows that last: %d drains in 10 s", drains)
	}
}
