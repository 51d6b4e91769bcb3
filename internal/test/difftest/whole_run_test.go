package difftest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// wholeRun is a random run: all of it follows from its seed.
type wholeRun struct {
	*wholes
	random *rand.Rand
	seed   uint64
	step   int
	what   string // the step, for a report
	plan   *plan.Plan
	tunnel plan.Fact
	reach  overlay.Reach
}

// TestS84_S85_S108_TheModelAndTheKernelAgreeOnOverlaysAsAWhole: random frames of guests and from tunnels, with ARP and
// ND of all forms, while MACs move between ports and hosts, controllers say and withdraw where MACs are and who has
// which address, the agent sweeps, and ports, endpoints and the underlay change. After each step everything is the same
// in the kernel as in the model: copies, packets, answers, and every entry of every table and counter.
func TestS84_S85_S108_TheModelAndTheKernelAgreeOnOverlaysAsAWhole(t *testing.T) {
	testkit.Long(t, "compares many random cases; TestS84_TheModelAndTheKernelAgreeOnOverlays has fewer")
	seed, steps := wholeSeed(t, uint64(time.Now().Unix()/86400)*1_000_000), 4000
	if os.Getenv("HEDDLE_SEED") != "" {
		steps = soakSteps
	}
	seen := map[string]int{}
	for range mostPairs {
		for _, seed := range []uint64{seed, seed ^ 1} {
			name := fmt.Sprintf("%s/%d", replicationOf(seed), seed)
			t.Run(name, func(t *testing.T) { wholeCase(t, seed, steps, seen) })
		}
		if t.Failed() || os.Getenv("HEDDLE_SEED") != "" || len(unmet(seen)) == 0 {
			return
		}
		seed += 2
	}
	t.Errorf("up to seed %d: no step with the outcomes %q: %v", seed, unmet(seen), seen)
}

// mostPairs is how many pairs of cases are run until all outcomes are met. One is enough on most days.
const mostPairs = 10

// unmet are the outcomes that no step had.
func unmet(seen map[string]int) []string {
	return slices.DeleteFunc(slices.Clone(wholeOutcomes), func(what string) bool { return seen[what] > 0 })
}

// TestSoakOverlays is the same for the duration in HEDDLE_SOAK: `make soak-frames`. HEDDLE_SEED is the first seed.
func TestSoakOverlays(t *testing.T) {
	text := os.Getenv("HEDDLE_SOAK")
	if text == "" {
		t.Skip("runs with HEDDLE_SOAK=duration: make soak-frames DURATION=…")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HEDDLE_SOAK: %v", err)
	}
	seed, end, cases := wholeSeed(t, uint64(time.Now().UnixNano())), time.Now().Add(length), 0
	for ; time.Now().Before(end) && !t.Failed(); cases++ {
		wholeCase(t, seed+uint64(cases), soakSteps, map[string]int{})
	}
	t.Logf("%d cases of %d steps from seed %d", cases, soakSteps, seed)
}

// soakSteps is how long a run is in a soak, and where a seed is given.
const soakSteps = 10_000

// replicationOf is the replication in a run with a seed.
func replicationOf(seed uint64) spec.Replication {
	return []spec.Replication{spec.ReplicateHead, spec.ReplicateTwoTier}[seed%2]
}

// wholeSeed is that in HEDDLE_SEED, or else the given one.
func wholeSeed(t *testing.T, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv("HEDDLE_SEED")
	if text == "" {
		return otherwise
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("HEDDLE_SEED: %v", err)
	}
	return seed
}

// wholeOutcomes are what a run must have met.
var wholeOutcomes = []string{
	"from a port: none", "from a port: arp-sender-not-allowed", "from a port: forged-transmit",
	"from a port: ip-source-not-allowed", "from a port: nd-target-not-allowed", "from a port: mac-limit",
	"from a port: vlan-not-allowed", "from a port: guest-tagged", "heard: new", "heard: again", "heard: moved",
	"heard: spoofed", "heard: unbound", "announced: by a question", "heard from others: new",
	"heard from others: again",
	"heard from others: moved", "heard from others: spoofed", "contested: moved", "out: none static",
	"out: none announced", "out: none learned", "out: none ", "out: neighbour-answered ",
	"out: neighbour-here ", "out: neighbour-limit ", "out: tunnel-mtu ", "out: tunnel-no-endpoint ",
	"answered: none", "in: none", "in: tunnel-unknown-endpoint", "in: tunnel-unknown-vni", "in: malformed",
	"placed: new", "placed: again", "placed: moved", "repeated: ",
	"known outside: true", "known outside: false",
}

// wholeCase is one run. It adds what it has met to seen.
func wholeCase(t *testing.T, seed uint64, steps int, seen map[string]int) {
	w := &wholeRun{wholes: newWholes(t, replicationOf(seed)), random: rand.New(rand.NewPCG(seed, 848)), seed: seed}
	defer w.close(t)
	w.seen = seen
	w.plan, w.tunnel, w.reach = w.plans[0], crossingFacts()[0], w.reaches()[0]
	if err := w.change(w.plan, w.tunnel, w.reach); err != nil {
		t.Fatal(err)
	}
	for w.step = 1; w.step <= steps; w.step++ {
		d, err := w.one()
		if err == nil && d == "" {
			d, err = w.tables()
		}
		if err != nil || d != "" {
			t.Fatalf("seed %d, step %d: %s: %v\n%s\nagain: HEDDLE_SEED=%d go test -run OverlaysAsAWhole/%s "+
				"./internal/test/difftest", seed, w.step, w.what, err, d, seed, replicationOf(seed))
		}
	}
}

// one is a step; it returns what differs in what becomes of a frame.
func (w *wholeRun) one() (string, error) {
	rush := w.step%1000 > 800 // many frames at one instant
	if !rush {
		w.now += time.Duration(w.random.IntN(150)) * time.Millisecond
	}
	if w.step%1000 == 801 {
		return "", w.rushes()
	}
	switch n := w.random.IntN(100); {
	case rush && n < 97:
		port := w.port(w.step / 1000 % 3)
		for range 4 {
			if d, err := w.sends(port, w.rushing(port)); d != "" || err != nil {
				return d, err
			}
		}
		return "", nil
	case n < 2:
		return w.quarrel()
	case n < 50:
		port := w.port(w.random.IntN(len(w.plan.Switches[0].Ports)))
		if w.random.IntN(6) == 0 {
			port = w.port(2)
		}
		return w.sends(port, w.fromPort(port))
	case n < 80:
		from, vni := w.sender(), []uint32{10, 10, 10, 10, 20, 11}[w.random.IntN(6)]
		frame := w.fromTunnel()
		w.what = fmt.Sprintf("from %s in VNI %d: %x", from, vni, frame)
		return w.arrive(from, vni, frame)
	case n < 87:
		return "", w.binds()
	case n < 93:
		return "", w.locates()
	case n < 96:
		w.what = "sweep"
		w.model.Crossing("s").Sweep(w.now)
		return "", w.crossing.Sweep(w.now)
	case n < 97:
		w.what = "time"
		w.now += []time.Duration{40 * time.Second, 5 * time.Minute, 11 * time.Minute}[w.random.IntN(3)]
		return "", nil
	}
	return "", w.changes()
}

func (w *wholeRun) sends(port *plan.Port, frame []byte) (string, error) {
	w.what = fmt.Sprintf("from port %s: %x", port.ID.Name, frame)
	return w.frame(port, frame)
}

// rushes begins a rush: the tunnel can be used, and it is known who has the addresses that are asked for.
func (w *wholeRun) rushes() error {
	w.tunnel, w.reach = crossingFacts()[0], w.reaches()[0]
	if err := w.change(w.plan, w.tunnel, w.reach); err != nil {
		return err
	}
	var put []overlay.Binding
	for n := 33; n < 36; n++ {
		for _, v6 := range []bool{false, true} {
			at := overlay.Address{VNI: 10, IP: w.address(v6, n)}
			put = append(put, overlay.Binding{Address: at, MAC: stationMAC(n)})
		}
	}
	w.what = "a rush begins"
	w.model.Crossing("s").Bind(false, put, nil, w.now)
	return w.crossing.Bind("s", false, put, nil, w.now)
}

// quarrel is two stations that claim one address in turn, one of this host and one elsewhere.
func (w *wholeRun) quarrel() (string, error) {
	here, far := w.port(0), spoken{mac: stationMAC(33 + w.random.IntN(7)), v6: w.random.IntN(2) == 0}
	far.address = w.address(far.v6, 200+w.random.IntN(8))
	near := spoken{here.InitialMAC, far.v6, far.address}
	claim := func(s spoken) []byte {
		if s.v6 {
			return w.advertises(s)
		}
		return w.arpOf(s, 2, s.address, s.address)
	}
	for range 1 + w.random.IntN(3) {
		w.now += time.Duration(w.random.IntN(1500)) * time.Millisecond
		if d, err := w.sends(here, claim(near)); d != "" || err != nil {
			return d, err
		}
		w.now += time.Duration(w.random.IntN(1500)) * time.Millisecond
		from, frame := w.sender(), claim(far)
		w.what = fmt.Sprintf("from %s in VNI 10: %x", from, frame)
		if d, err := w.arrive(from, 10, fit(frame)); d != "" || err != nil {
			return d, err
		}
	}
	return w.sends(here, claim(near))
}

// port is one of the ports of the plan.
func (w *wholeRun) port(n int) *plan.Port { return w.plan.Switches[0].Ports[n] }

// sender is an outer address: of a host that is named, mostly.
func (w *wholeRun) sender() netip.Addr {
	if n := len(w.reach.Endpoints); n > 0 && w.random.IntN(20) > 0 {
		return w.reach.Endpoints[w.random.IntN(n)].Address
	}
	return netip.MustParseAddr([]string{"198.51.100.2", "203.0.113.9", "192.0.2.1", "2001:db8::9"}[w.random.IntN(4)])
}

// reaches are what a host can have been told: all peers, with and without learning; some; nobody.
func (w *wholeRun) reaches() []overlay.Reach {
	all := overlay.Of(w.plans[0].Switches[0])
	some, deaf := all, all
	some.Segments = []overlay.Segment{{VNI: 10, Members: all.Segments[0].Members[1:]}, {VNI: 20}}
	some.Endpoints = all.Endpoints[1:]
	deaf.Learn = false
	return []overlay.Reach{all, all, some, deaf, {}}
}

// changes changes one of what the host is made of.
func (w *wholeRun) changes() error {
	w.now += time.Second // a segment that comes back may have another number, under which nobody has used up anything
	switch w.random.IntN(3) {
	case 0:
		w.plan = w.plans[w.random.IntN(len(w.plans))]
	case 1:
		w.tunnel = crossingFacts()[w.random.IntN(4)]
	default:
		list := w.reaches()
		w.reach = list[w.random.IntN(len(list))]
	}
	w.what = fmt.Sprintf("%d ports, tunnel %+v, %d endpoints, learning %v", len(w.plan.Switches[0].Ports), w.tunnel,
		len(w.reach.Endpoints), w.reach.Learn)
	return w.change(w.plan, w.tunnel, w.reach)
}

// binds is the controllers' word on addresses.
func (w *wholeRun) binds() error {
	var put []overlay.Binding
	var removed []overlay.Address
	at := func() overlay.Address {
		return overlay.Address{VNI: []uint32{10, 10, 10, 20}[w.random.IntN(4)],
			VLAN: []uint16{0, 0, 7, 9}[w.random.IntN(4)], IP: w.address(w.random.IntN(2) == 0, w.random.IntN(40))}
	}
	for range w.random.IntN(4) {
		age := time.Duration(w.random.IntN(40)) * time.Second
		put = append(put, overlay.Binding{Address: at(), MAC: w.mac(), Age: age})
	}
	for range w.random.IntN(3) {
		removed = append(removed, at())
	}
	all := w.random.IntN(10) == 0
	w.what = fmt.Sprintf("controllers bind, all %v: %v, not %v", all, put, removed)
	w.model.Crossing("s").Bind(all, put, removed, w.now)
	return w.crossing.Bind("s", all, put, removed, w.now)
}

// locates is the controllers' word on where MACs are.
func (w *wholeRun) locates() error {
	var put []overlay.Location
	var removed []overlay.Key
	key := func() overlay.Key {
		return overlay.Key{VNI: []uint32{10, 10, 20, 11}[w.random.IntN(4)], MAC: w.mac(),
			Inside: []overlay.Inside{0, 0, overlay.In(0), overlay.In(7), overlay.In(9)}[w.random.IntN(5)]}
	}
	for range w.random.IntN(4) {
		put = append(put, overlay.Location{Key: key(), Endpoint: w.sender(), Source: overlay.Announced})
	}
	for range w.random.IntN(3) {
		removed = append(removed, key())
	}
	all := w.random.IntN(10) == 0
	w.what = fmt.Sprintf("controllers locate, all %v: %v, not %v", all, put, removed)
	w.model.Crossing("s").Locate(all, put, removed)
	return w.crossing.Locate("s", all, put, removed)
}
