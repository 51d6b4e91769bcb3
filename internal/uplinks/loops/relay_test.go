package loops

import (
	"bytes"
	"testing"
	"time"

	"heddle/internal/plan"
)

func TestS110_AProbeIsSentOnAsItIsFromThisHostsAddress(t *testing.T) {
	ours, theirs := testSender(1), testSender(9)
	probe := theirs.Frame(Probe{Number: 7, VLAN: 10, Round: 3}, false)[14:]
	for _, c := range []struct {
		vlan uint16
		ad   bool
		tag  []byte
	}{{0, false, nil}, {20, false, []byte{0x81, 0, 0, 20}}, {20, true, []byte{0x88, 0xa8, 0, 20}}} {
		want := append(bytes.Repeat([]byte{0xff}, 6), 2, 2, 3, 4, 5, 6)
		want = append(append(append(want, c.tag...), 0x88, 0xb5), probe...)
		if got := ours.Onward(append(probe, "and more"...), c.vlan, c.ad); !bytes.Equal(got, want) {
			t.Errorf("got  %x\nwant %x", got, want)
		}
	}
	if got, err := theirs.Read(ours.Onward(probe, 0, false)[14:]); err != nil || got.Number != 7 || got.VLAN != 10 {
		t.Errorf("its sender reads %+v, %v", got, err)
	}
}

func TestS110_WhichProbesAreOfOtherHosts(t *testing.T) {
	low, high := testSender(1), testSender(9)
	probe := func(s *Sender) []byte { return s.Frame(Probe{Number: 7}, false)[14:] }
	for _, c := range []struct {
		what      string
		at        *Sender
		payload   []byte
		first, ok bool
	}{
		{"that blocks first", low, probe(high), true, true},
		{"that blocks second", high, probe(low), false, true},
		{"its own", low, probe(low), false, false},
		{"too short", low, probe(high)[:probeLen-1], false, false},
		{"something else", low, append([]byte("HdLq"), probe(high)[4:]...), false, false},
	} {
		t.Run(c.what, func(t *testing.T) {
			if first, ok := c.at.Other(c.payload); first != c.first || ok != c.ok {
				t.Errorf("%s: first %v, ok %v", c.what, first, ok)
			}
		})
	}
}

func TestS110_SoManyProbesOfAPortAreSentOnInASecondAndOthersHaveTheirOwn(t *testing.T) {
	var r Relay
	now := time.Unix(1_000_000, 0)
	taken := func(name string, n int) (ok int) {
		for range n {
			if r.Take(plan.PortID{Switch: "s", Name: name}, now) {
				ok++
			}
		}
		return ok
	}
	if n := taken("a", 1000); n != relaysPerSecond {
		t.Errorf("%d of a port", n)
	}
	if n := taken("b", 5); n != 5 {
		t.Errorf("%d of another", n)
	}
	now = now.Add(time.Second)
	if n := taken("a", 1000); n != relaysPerSecond {
		t.Errorf("%d in the next second", n)
	}
	r.Keep(func(id plan.PortID) bool { return id.Name == "b" })
	if len(r.ports) != 1 {
		t.Errorf("keeps %v", r.ports)
	}
}

// Both hosts of a loop find it. One blocks at once, and the other only if the loop still exists then.
func TestS110_OfTwoHostsOneBlocksItsEnd(t *testing.T) {
	across := ways("1:a=u2:a")
	for _, c := range []struct {
		what     string
		ways     []Way
		met      string
		open     bool // the other host has opened the loop
		at, then string
	}{
		{"nobody else has probed", across, "", false, "+1", "+1"},
		{"the other one blocks", across, "1:a", true, "", ""},
		{"the other one does not", across, "1:a", false, "", "+1"},
		{"it probed by another port", across, "3:a", false, "+1", "+1"},
		{"the loop is within this host", ways("1:a=2:a"), "2:a", false, "+2", "+2"},
	} {
		t.Run(c.what, func(t *testing.T) {
			w := newWorld(t)
			w.ways = c.ways
			if c.met != "" {
				w.m.Met(end(c.met).ID, w.now)
			}
			w.sign("1", "a", 1)
			w.run(100 * time.Millisecond)
			w.want(c.at)
			if c.open {
				w.ways = nil
			}
			w.run(800 * time.Millisecond)
			w.want(c.then)
			w.run(20 * time.Second)
			w.want(c.then)
			if len(w.m.yields) > 0 {
				t.Errorf("still waits: %v", w.m.yields)
			}
		})
	}
}

// A host that blocks first can delay a block once, but not for ever.
func TestS110_WhoForgesProbesOfOtherHostsIsBlockedAllTheSame(t *testing.T) {
	w := newWorld(t)
	w.ways = ways("1:a=u2:a")
	w.sign("1", "a", 1)
	for range 90 {
		w.m.Met(end("1:a").ID, w.now)
		w.run(10 * time.Millisecond)
	}
	w.want("+1")
}
