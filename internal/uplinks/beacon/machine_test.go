package beacon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heddle/internal/plan"
)

// network is a group of uplinks on a physical network, in simulated time. joined reports whether a frame that uplink a
// sends in a VLAN arrives on b.
type network struct {
	t      failer
	m      *Machine
	group  Group
	now    time.Time
	joined func(a, b string, vlan uint16) bool
	events []string
	sent   []Beacon // of the last cycle
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func id(name string) plan.PortID { return plan.PortID{Switch: "s", Name: name} }

func newNetwork(t failer, uplinks string, delay time.Duration, vlans ...uint16) *network {
	g := Group{Switch: "s", VLANs: vlans}
	if len(vlans) == 0 {
		g.VLANs = []uint16{0}
	}
	for u := range strings.FieldsSeq(uplinks) {
		g.Members = append(g.Members, Member{id(u), plan.AllVLANs()})
	}
	n := &network{t: t, m: New(g, delay), group: g, now: time.Unix(0, 0), joined: func(string, string, uint16) bool {
		return true
	}}
	for _, u := range g.Members {
		n.m.Link(u.ID, true)
	}
	return n
}

// pass lets that many cycles pass.
func (n *network) pass(cycles int) {
	for range cycles {
		probes, changes := n.m.Cycle(n.now)
		n.take(changes)
		n.sent = probes
		for _, b := range probes {
			for _, u := range n.group.Members {
				if n.joined(b.Uplink.Name, u.ID.Name, b.VLAN) {
					n.m.Heard(u.ID, b)
				}
			}
		}
		n.now = n.now.Add(Interval)
	}
}

func (n *network) take(changes []Change) {
	for _, c := range changes {
		switch {
		case c.Uplink == plan.PortID{}:
			n.events = append(n.events, string(c.State))
		case !c.Why.None():
			n.events = append(n.events, c.Uplink.Name+" out")
		default:
			n.events = append(n.events, c.Uplink.Name+" in")
		}
	}
}

// out lists the uplinks that are out of use.
func (n *network) out() string {
	var list []string
	for _, u := range n.group.Members {
		if !n.m.Out(u.ID).None() {
			list = append(list, u.ID.Name)
		}
	}
	return strings.Join(list, " ")
}

// switches makes each word a physical switch with its uplinks: "1,2 3".
func (n *network) switches(parts string) {
	on := map[string]int{}
	for i, part := range strings.Fields(parts) {
		for u := range strings.SplitSeq(part, ",") {
			on[u] = i + 1
		}
	}
	n.joined = func(a, b string, _ uint16) bool { return on[a] != 0 && on[a] == on[b] }
}

func (n *network) expect(out string, s State) {
	n.t.Helper()
	if n.out() != out || n.m.State() != s {
		n.t.Errorf("at %v: %q out, %s; want %q, %s", n.now.Unix(), n.out(), n.m.State(), out, s)
	}
}

func TestS51_OneOfThreeThatHearsNothingIsTakenOutAfterThreeIntervals(t *testing.T) {
	n := newNetwork(t, "1 2 3", 100*time.Millisecond)
	n.pass(10)
	n.expect("", Fine)
	n.switches("1,2 3")
	n.pass(3)
	n.expect("", Fine)
	n.pass(1)
	n.expect("3", Fine)
	n.pass(100)
	n.expect("3", Fine)
	n.switches("1,2,3")
	n.pass(1)
	n.expect("3", Fine) // heard again, and then until the up-delay has passed
	n.pass(2)
	n.expect("", Fine)
	if got := strings.Join(n.events, ", "); got != "3 out, 3 in" {
		t.Errorf("events: %s", got)
	}
}

func TestS51_TwoThatAreSilentBothStayInUse(t *testing.T) {
	n := newNetwork(t, "1 2", 0)
	n.pass(5)
	n.switches("1 2")
	n.pass(5)
	n.expect("", Ambiguous)
	n.switches("1,2")
	n.pass(2)
	n.expect("", Fine)
	n.joined = func(a, b string, _ uint16) bool { return a == "1" } // one way only
	n.pass(5)
	n.expect("", Ambiguous)
	if got := strings.Join(n.events, ", "); got != "ambiguous, fine, ambiguous" {
		t.Errorf("events: %s", got)
	}
}

func TestS51_PartitionsOfThePhysicalNetwork(t *testing.T) {
	for _, c := range []struct {
		uplinks, switches, out string
		state                  State
	}{
		{"1 2 3", "1,2,3", "", Fine},
		{"1 2 3", "1,3 2", "2", Fine},
		{"1 2 3", "1 2 3", "", Ambiguous},
		{"1 2 3 4", "1,2 3,4", "", Split}, // two switches whose link to each other is broken
		{"1 2 3 4", "1,2,4 3", "3", Fine},
		{"1 2 3 4", "1,2 3 4", "3 4", Fine}, // n-2 failures
		{"1 2 3 4", "1,2", "3 4", Fine},     // dead switches
		{"1 2 3 4 5", "1,2 3,4 5", "5", Split},
		{"1 2 3 4", "", "", Ambiguous},
	} {
		n := newNetwork(t, c.uplinks, 0)
		n.pass(3)
		n.switches(c.switches)
		n.pass(6)
		t.Run(c.uplinks+" on "+c.switches, func(t *testing.T) {
			n.t = t
			n.expect(c.out, c.state)
		})
	}
}

func TestS51_AnUplinkThatOnlySendsOrOnlyReceivesIsTakenOut(t *testing.T) {
	for _, deaf := range []bool{true, false} {
		n := newNetwork(t, "1 2 3", 0)
		n.pass(3)
		n.joined = func(a, b string, _ uint16) bool { return deaf && b != "2" || !deaf && a != "2" }
		n.pass(5)
		n.expect("2", Fine)
	}
}

func TestS51_AnUplinkWithoutLinkTakesNoPart(t *testing.T) {
	n := newNetwork(t, "1 2 3", 0)
	n.pass(5)
	n.take(n.m.Link(id("1"), false))
	n.pass(10)
	n.expect("", Fine)
	if slices.ContainsFunc(n.sent, func(b Beacon) bool { return b.Uplink == id("1") }) {
		t.Error("it sends beacons")
	}
	n.switches("2 3")
	n.pass(5)
	n.expect("", Ambiguous)
	n.take(n.m.Link(id("1"), true))
	n.switches("1,2 3")
	n.pass(6)
	n.expect("3", Fine)
	n.take(n.m.Link(id("1"), false))
	n.expect("3", Fine)
	n.take(n.m.Link(id("2"), false)) // a bad uplink is better than none
	n.expect("", Fine)
}

func TestS51_ManyVLANsTakeSeveralCyclesARound(t *testing.T) {
	vlans := make([]uint16, MaxVLANs)
	for i := range vlans {
		vlans[i] = uint16(100 + i)
	}
	n := newNetwork(t, "1 2 3", 0, vlans...)
	perCycle := map[string]bool{}
	for range 4 {
		n.pass(1)
		if len(n.sent) > MaxPerCycle || len(n.sent) == 0 {
			t.Errorf("%d beacons in a cycle", len(n.sent))
		}
		for _, b := range n.sent {
			perCycle[fmt.Sprint(b.Uplink.Name, b.VLAN)] = true
		}
	}
	if len(perCycle) != 3*MaxVLANs {
		t.Errorf("%d of %d beacons in a round", len(perCycle), 3*MaxVLANs)
	}
	// The network carries only one of the VLANs, which is enough, and 3 is cut off from it.
	n.joined = func(a, b string, v uint16) bool { return v == 199 && a != "3" && b != "3" }
	n.pass(3*4 + 4)
	n.expect("3", Fine)
}

func TestS51_VLANsThatAnUplinkDoesNotCarryAreNotSentOnIt(t *testing.T) {
	n := newNetwork(t, "1 2", 0, 10, 20)
	var only plan.VLANSet
	only.AddRange(20, 20)
	n.group.Members[1].VLANs = only
	n.m.Set(n.group, 0)
	n.pass(1)
	var got []string
	for _, b := range n.sent {
		got = append(got, fmt.Sprint(b.Uplink.Name, "/", b.VLAN))
	}
	if s := strings.Join(got, " "); s != "1/10 1/20 2/20" {
		t.Errorf("sent %s", s)
	}
}

func TestS51_BeaconsThatAreKeptAndSentAgainLaterProveNothing(t *testing.T) {
	n := newNetwork(t, "1 2 3", 0)
	n.pass(5)
	old := n.sent
	n.switches("1,2 3")
	n.pass(2) // beacons of the next round may still be on their way
	for range 10 {
		n.pass(1)
		for _, b := range old {
			n.m.Heard(id("3"), b)
			b.Round += 1000
			n.m.Heard(id("3"), b)
			b.Uplink = id("unknown")
			n.m.Heard(id("3"), b)
		}
	}
	n.expect("3", Fine)
}

// Whatever the network is like: never are all uplinks with a link out of use; an uplink that is connected in both
// directions to another one in use is never taken out; one that is cut off, while others hear each other, is taken out
// in time; and if everything works, all are used.
func TestS51_Property(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(2, 6).Draw(t, "uplinks")
		var names []string
		for i := range count {
			names = append(names, fmt.Sprint(i+1))
		}
		delay := time.Duration(rapid.IntRange(0, 3).Draw(t, "up-delay s")) * time.Second
		n := newNetwork(t, strings.Join(names, " "), delay)
		reach := map[string]bool{}
		n.joined = func(a, b string, _ uint16) bool { return n.m.by[id(a)].up && n.m.by[id(b)].up && reach[a+">"+b] }
		for range rapid.IntRange(1, 6).Draw(t, "phases") {
			for _, a := range names {
				for _, b := range names {
					reach[a+">"+b] = rapid.IntRange(0, 3).Draw(t, a+">"+b) > 0
				}
				n.take(n.m.Link(id(a), rapid.IntRange(0, 5).Draw(t, "link "+a) > 0))
			}
			for range rapid.IntRange(0, 12).Draw(t, "cycles") {
				n.pass(1)
				n.someIsUsed(t)
			}
			n.pass(int(delay/time.Second) + 10)
			n.someIsUsed(t)
			n.judged(t, reach)
		}
		for k := range reach {
			reach[k] = true
		}
		n.pass(int(delay/time.Second) + 10)
		if n.out() != "" || n.m.State() != Fine {
			t.Fatalf("on a sound network %q are out, state %s", n.out(), n.m.State())
		}
	})
}

func (n *network) someIsUsed(t *rapid.T) {
	up := n.m.linked()
	if len(up) > 0 && !slices.ContainsFunc(up, func(u Member) bool { return n.m.Out(u.ID).None() }) {
		t.Fatalf("all of %d uplinks with a link are out", len(up))
	}
}

// judged checks which uplinks are out of use, after a while without changes, against which reach each other.
func (n *network) judged(t *rapid.T, reach map[string]bool) {
	up := n.m.linked()
	both := func(a, b Member) bool {
		return a.ID != b.ID && reach[a.ID.Name+">"+b.ID.Name] && reach[b.ID.Name+">"+a.ID.Name]
	}
	for _, u := range up {
		sends, receives, used, others := false, false, false, false
		for _, o := range up {
			if o.ID == u.ID {
				continue
			}
			sends = sends || reach[u.ID.Name+">"+o.ID.Name]
			receives = receives || reach[o.ID.Name+">"+u.ID.Name]
			used = used || both(u, o) && n.m.Out(o.ID).None()
			for _, p := range up {
				others = others || p.ID != u.ID && both(o, p)
			}
		}
		cut := !sends || !receives
		if !n.m.Out(u.ID).None() && used {
			t.Fatalf("%s is out though it hears one in use, and that hears it", u.ID.Name)
		}
		if n.m.Out(u.ID).None() && cut && others {
			t.Fatalf("%s is used though it is cut off (sends %v, receives %v) and others hear each other", u.ID.Name,
				sends, receives)
		}
	}
}
