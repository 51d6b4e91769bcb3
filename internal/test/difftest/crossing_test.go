package difftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/dataplane"
	"heddle/internal/model"
	"heddle/internal/observe"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

const crossingSwitch = `
switches:
- name: s
  tunnel:
    replication: %s
    endpoints: [{address: 192.0.2.1}, {address: 192.0.2.9}, {address: "2001:db8::1"}]
    peers:
    - {name: h2, address: 198.51.100.2, macs: [{vni: 10, mac: "02:00:00:00:00:01"}]}
    - {name: h2, address: 198.51.100.3}
    - {name: h3, address: "2001:db8::3"}
    - {address: 203.0.113.4}
    - {name: h5, address: 192.0.2.5}
    - {name: h6, address: 198.51.100.6}
    - {name: h7, address: 192.0.2.7}
  portGroups:
  - {name: web, overlay: {vni: 10}}
  - {name: inside, overlay: {vni: 10}, vlan: {access: 7}}
  - {name: alone, overlay: {vni: 20}}
ports:
- {name: a, switch: s, portGroup: web, device: a}
- {name: b, switch: s, portGroup: inside, device: b}
- {name: c, switch: s, portGroup: alone, device: c}
`

// crossers are a switch's tunnel in the kernel and in the model, side by side.
type crossers struct {
	kernel  *dataplane.CrossingRecorder
	model   *model.Crossing
	desired binding.Desired
	counted observe.Counters
	now     time.Duration
	// repeated is how many packets the host has sent as a proxy.
	repeated int
	// answers are the errors that ports have got.
	answers int
}

func newCrossers(tb testing.TB, replication spec.Replication) *crossers {
	tb.Helper()
	cfg, err := spec.Parse("crossing.yaml", fmt.Appendf(nil, crossingSwitch, replication))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		tb.Fatal(err)
	}
	k, err := dataplane.NewSmallCrossingRecorder()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := k.Close(); err != nil {
			tb.Error(err)
		}
	})
	return &crossers{kernel: k, desired: binding.Desired{Plan: p}, now: time.Second,
		counted: observe.Counters{Drops: map[abi.Reason]uint64{}, Refused: map[abi.Reason]uint64{}}}
}

// set makes the host what fact and reach say.
func (x *crossers) set(tb testing.TB, fact plan.Fact, reach overlay.Reach) {
	tb.Helper()
	sw := x.desired.Plan.Switches[0]
	x.desired.Facts = plan.Facts{sw.Tunnel.ID: fact}
	x.desired.Reach = map[string]overlay.Reach{sw.Name: reach}
	if err := x.kernel.Set(x.desired, x.now); err != nil {
		tb.Fatal(err)
	}
	x.model = model.NewCrossing(sw, fact, reach).After(x.model, x.now)
}

// tell has a controller say where one MAC is: in one VLAN, or in the whole VNI.
func (x *crossers) tell(tb testing.TB, random *rand.Rand, mac plan.MAC) {
	tb.Helper()
	ends := x.desired.Reach["s"].Endpoints
	if len(ends) == 0 {
		return
	}
	put := []overlay.Location{{Key: overlay.Key{VNI: 10, MAC: mac,
		Inside: []overlay.Inside{0, overlay.In(0), overlay.In(7)}[random.IntN(3)]}, Source: overlay.Announced,
		Endpoint: ends[random.IntN(len(ends))].Address}}
	x.model.Locate(false, put, nil)
	if err := x.kernel.Locate("s", false, put, nil); err != nil {
		tb.Fatal(err)
	}
}

// leave hands a frame to both, on its way out, a moment after the one before.
func (x *crossers) leave(tb testing.TB, vni uint32, frame []byte) []model.Outer {
	tb.Helper()
	x.now += time.Second / abi.ErrorsPerSecond
	return x.leaveNow(tb, vni, frame)
}

// sender is a port of this host.
var sender = plan.PortID{Switch: "s", Name: "a"}

// leaveNow is leave at the same moment as the one before.
func (x *crossers) leaveNow(tb testing.TB, vni uint32, frame []byte) []model.Outer {
	tb.Helper()
	want := x.model.Leave(sender, vni, frame, x.now)
	got, answer, err := x.kernel.LeaveFrom(1, "s", vni, frame, 0, x.now)
	if err != nil {
		tb.Fatal(err)
	}
	x.same(tb, fmt.Sprintf("a frame leaves in VNI %d: %x", vni, frame), want.Outers, got)
	if !bytes.Equal(answer, want.Answer) {
		tb.Fatalf("a frame in VNI %d: %x\nthe model answers:  %x\nthe kernel answers: %x", vni, frame, want.Answer,
			answer)
	}
	if want.Answer != nil {
		x.answers++
	}
	return want.Outers
}

// same compares the packets in which a frame leaves, in any order.
func (x *crossers) same(tb testing.TB, what string, want []model.Outer, got []dataplane.RecordedOuter) {
	tb.Helper()
	for _, o := range want {
		if o.Reason != abi.ReasonNone {
			x.counted.Refused[o.Reason]++
		}
	}
	if d := differOuters(want, got); d != "" {
		tb.Fatalf("%s\n%s", what, d)
	}
}

// arrive hands a frame to both that came from an outer address.
func (x *crossers) arrive(tb testing.TB, from netip.Addr, vni uint32, frame []byte) abi.Reason {
	tb.Helper()
	said := x.model.Arrive(from, vni, frame, x.now)
	want := dataplane.RecordedArrival{Reason: said.Reason}
	if want.Reason == abi.ReasonNone {
		want.VNI = vni
		if binary.BigEndian.Uint16(frame[12:]) == 0x8100 {
			tci := binary.BigEndian.Uint16(frame[14:])
			want.VLAN, want.Priority = tci&0xfff, byte(tci>>13)
		}
	} else {
		x.countDrop(want.Reason, frame)
	}
	got, repeated, err := x.kernel.Arrive("s", from, vni, frame, x.now)
	if err != nil {
		tb.Fatal(err)
	}
	if want.Reason == abi.ReasonNone {
		x.repeated += len(repeated)
		x.same(tb, fmt.Sprintf("a frame from %s is repeated in VNI %d: %x", from, vni, frame),
			said.Repeated, repeated)
	}
	if got != want {
		tb.Fatalf("a frame arrives from %s in VNI %d: %x\nthe model:  %+v\nthe kernel: %+v", from, vni, frame, want,
			got)
	}
	return want.Reason
}

func tagged(frame []byte) bool {
	t := binary.BigEndian.Uint16(frame[12:])
	return t == 0x8100 || t == 0x88a8
}

// leavable makes a frame one that the switch can hand to a tunnel: its first tag, if it has one, is that of a VLAN.
func leavable(frame []byte) []byte {
	if tagged(frame) {
		binary.BigEndian.PutUint16(frame[12:], 0x8100)
		if binary.BigEndian.Uint16(frame[14:])&0xfff == 0 {
			frame[15] = 7
		}
	}
	return frame
}

// countDrop counts a frame that does not get as far as the switch.
func (x *crossers) countDrop(why abi.Reason, frame []byte) {
	class := abi.ClassUnicast
	if frame[0]&1 != 0 {
		class = abi.ClassMulticast
	}
	if plan.MAC(frame[:6]) == (plan.MAC{255, 255, 255, 255, 255, 255}) {
		class = abi.ClassBroadcast
	}
	x.counted.PacketsIn[class]++
	x.counted.BytesIn[class] += uint64(len(frame))
	x.counted.Drops[why]++
}

// settled compares what both have counted and learned.
func (x *crossers) settled(tb testing.TB) {
	tb.Helper()
	got, err := x.kernel.Counters("s")
	if err != nil {
		tb.Fatal(err)
	}
	if !maps.Equal(got.Drops, x.counted.Drops) || !maps.Equal(got.Refused, x.counted.Refused) ||
		got.PacketsIn != x.counted.PacketsIn || got.BytesIn != x.counted.BytesIn {
		tb.Errorf("counters: want %+v\n  got %+v", x.counted, got)
	}
	x.sameTables(tb)
}

// sameTables compares what both know of stations.
func (x *crossers) sameTables(tb testing.TB) {
	tb.Helper()
	got, err := x.kernel.Tables("s")
	if err != nil {
		tb.Fatal(err)
	}
	if d := differTables(x.model.Tables(), tablesOf(&got)); d != "" {
		tb.Fatal(d)
	}
}

// crossingFacts are what a host can be: with both families or one, with a small underlay, or with nothing.
func crossingFacts() []plan.Fact {
	own := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1"),
		netip.MustParseAddr("192.0.2.9")}
	return []plan.Fact{{Up: true, MTU: 1600, Endpoints: own}, {Up: true, MTU: 1500, Endpoints: own[:1]},
		{Up: true, MTU: 1552, Endpoints: own[1:2]}, {MTU: 1600}}
}

// reaches are what a host can have been told: all peers, members of one VNI alone, no learning, nobody.
func (x *crossers) reaches() []overlay.Reach {
	all := overlay.Of(x.desired.Plan.Switches[0])
	some, deaf := all, all
	deaf.Endpoints = slices.Clone(all.Endpoints) // and with paths that are narrower than the host's device
	deaf.Endpoints[0].MTU, deaf.Endpoints[2].MTU, deaf.Endpoints[3].MTU = 1500, 1540, 40
	some.Segments = []overlay.Segment{{VNI: 10, Members: all.Segments[0].Members[1:]}, {VNI: 20}}
	some.Endpoints = all.Endpoints[1:]
	deaf.Learn = false
	return []overlay.Reach{all, some, deaf, {}}
}

// TestS84_S105_TheModelAndTheKernelAgreeOnTunnels: random frames leave by and arrive from a tunnel, whole, truncated,
// with nested tags, of wrong VNIs and forged senders, while endpoints, members and the underlay change. Packets,
// repeated ones too, reasons, counters and what is learned are the same.
func TestS84_S105_TheModelAndTheKernelAgreeOnTunnels(t *testing.T) {
	testkit.Root(t)
	for _, replication := range []spec.Replication{spec.ReplicateHead, spec.ReplicateTwoTier} {
		t.Run(string(replication), func(t *testing.T) { agreeOnTunnels(t, replication) })
	}
}

func agreeOnTunnels(t *testing.T, replication spec.Replication) {
	x := newCrossers(t, replication)
	seed := uint64(time.Now().Unix() / 86400)
	random := rand.New(rand.NewPCG(seed, 105))
	senders := []string{"198.51.100.2", "198.51.100.2", "198.51.100.3", "2001:db8::3", "203.0.113.4", "192.0.2.1",
		"203.0.113.5", "2001:db8::9", "198.51.100.6", "192.0.2.5", "192.0.2.7"}
	seen := map[string]int{}
	for i := range 20000 {
		x.now += time.Duration(random.IntN(200)) * time.Millisecond
		if i%250 == 0 {
			x.set(t, crossingFacts()[i/250%4], x.reaches()[i/1000%4])
			x.sameTables(t)
		}
		if i%1000 == 999 {
			x.now += 9 * time.Minute // what is learned grows old
		}
		if i%20 == 0 {
			x.tell(t, random, plan.MAC{2, 0, 0, 0, 0, byte(2 + random.IntN(3))})
		}
		vni := []uint32{10, 10, 10, 20, 20, 11, 0}[random.IntN(7)]
		if random.IntN(2) == 0 {
			from := netip.MustParseAddr(senders[random.IntN(len(senders))])
			seen["in "+x.arrive(t, from, vni, crossingFrame(random, false)).String()]++
			continue
		}
		for _, o := range x.leave(t, vni, leavable(crossingFrame(random, true))) {
			seen[fmt.Sprintf("out %s %v%s", o.Reason, o.To.Is4(), o.Known)]++
		}
	}
	x.settled(t)
	if (x.repeated > 0) != (replication == spec.ReplicateTwoTier) {
		t.Errorf("%d packets were repeated", x.repeated)
	}
	for _, what := range []string{"in none", "in malformed", "in tunnel-unknown-endpoint", "in tunnel-unknown-vni",
		"in guest-link-control", "out none true", "out none false", "out none truelearned", "out none falselearned",
		"out none truestatic", "out none trueannounced", "out tunnel-mtu true", "out tunnel-mtu false",
		"out tunnel-no-endpoint false",
		"out tunnel-unknown-vni false"} {
		if seen[what] == 0 {
			t.Errorf("seed %d: no frame with the outcome %q: %v", seed, what, seen)
		}
	}
}
