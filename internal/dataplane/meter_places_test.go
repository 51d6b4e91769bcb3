package dataplane

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/flow"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// placed returns a program with the given number of fast slots and the given patience. A drain assumes more of them:
// set inTables if flows fill less than a bucket.
func placed(places, patience uint32) tweak {
	return tweak{spec: func(spec *ebpf.CollectionSpec) {
		if err := setPlaces(spec, places, patience); err != nil {
			panic(err)
		}
	}}
}

// sorted collects flows, and counts how many packets came from fast slots and how many from tables.
type sorted struct {
	*kept
	fromPlaces, fromTables uint64
}

func (s *sorted) add(b flow.Batch) error {
	from := &s.fromTables
	if int(b.Number&(1<<tableBits-1)) > ebpf.MustPossibleCPU() {
		from = &s.fromPlaces
	}
	for _, c := range b.Counts {
		*from += c.Packets
	}
	return s.kept.add(b)
}

// Flows that compete for a fast slot are counted in it, in the table, or first in one and then in the other, while
// drains come in between: each packet once.
func TestFlowsThatShareAPlaceAreCountedExactly(t *testing.T) {
	testkit.Long(t, "makes many flows; TestFlowsThatShareABucketAreCountedExactly has fewer")
	for _, c := range []struct{ places, patience uint32 }{{1, 2}, {1, 32}, {2, 3}, {fewestPlaces, abi.PlacePatience}} {
		t.Run(fmt.Sprintf("%d places, patience %d", c.places, c.patience), func(t *testing.T) {
			dir := bpffs(t)
			host, guests, d := meteredPorts(t, 1000)
			k := inForce(t, host, dir, d, placed(c.places, c.patience))
			defer k.Close()
			k.flows.inTables = c.places < bucketCells
			all := &sorted{kept: newKept(t)}
			streams := []*numbered{startNumbered(t, guests[0], guests[1], 10_000),
				startNumbered(t, guests[1], guests[0], 10_000), startNumbered(t, guests[0], guests[1], 500)}
			for range 15 {
				waitFor(t, k, 200)
				if err := k.Flows().Drain(all.add); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range streams {
				s.end()
			}
			drainAtRest(t, k, all.add)
			checkBooks(t, k, all.kept)
			if all.fromPlaces == 0 || c.places == 1 && all.fromTables == 0 {
				t.Errorf("%d packets were counted at places, %d in tables", all.fromPlaces, all.fromTables)
			}
			if losses, err := k.Flows().Losses(); err != nil || len(losses) > 0 {
				t.Errorf("losses %v, %v", losses, err)
			}
		})
	}
}

// The content of a fast slot from another round is void: the slot is free.
func TestAPlaceOfAnotherRoundIsFree(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	k := inForce(t, host, dir, d, tweak{})
	defer k.Close()
	all := &sorted{kept: newKept(t)}
	s := startNumbered(t, guests[0], guests[1], 5000)
	for range 4 {
		leaveAtPlaces(t, k.flows)
		waitFor(t, k, 100)
		if err := k.Flows().Drain(all.add); err != nil {
			t.Fatal(err)
		}
	}
	s.end()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all.kept)
	if all.fromTables > 0 {
		t.Errorf("%d packets were counted in tables, though there were places", all.fromTables)
	}
}

// flowRig runs the program over frames of a number of flows between two guests, metered on their way out.
type flowRig struct {
	*FrameBench
	t      *testing.T
	guests []guest
	d      binding.Desired
	flows  int
}

func newFlowRig(t *testing.T, flows int) *flowRig {
	t.Helper()
	_, guests, d := meteredPorts(t, 10_000)
	b, err := NewFrameBench(flows)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	for _, p := range d.Plan.Switches[0].Ports {
		p.Policy.Monitoring.Observe.V = spec.ObserveEgress
	}
	return &flowRig{b, t, guests, d, flows}
}

// send sends, in turn, each frames of every flow; address returns a flow's source address.
func (r *flowRig) send(each int, address func(uint32) uint32) {
	r.t.Helper()
	cycle := make([]BenchFrame, r.flows)
	for i := range cycle {
		cycle[i] = BenchFrame{From: r.d.Plan.Switches[0].Ports[0].ID, Dst: r.guests[1].mac, Src: r.guests[0].mac,
			Flow: address(uint32(i))}
	}
	frame := make([]byte, 60)
	frame[12], frame[14], frame[17], frame[22], frame[23], frame[39] = 8, 0x45, 46, 64, 17, 26
	if err := errors.Join(r.SetCycle(cycle), r.SetFlows(GivenFlows)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.Cycle(frame, r.flows*each, false); err != nil {
		r.t.Fatal(err)
	}
}

func forget(flow.Batch) error { return nil }

// Flows that differ little spread over the cells as if at random: of 1,000 flows nearly all find one of 4,096 cells.
func TestFlowsThatAreAlikeSpreadOverThePlaces(t *testing.T) {
	const flows = 1000
	r := newFlowRig(t, flows)
	b := r.FrameBench
	for what, address := range map[string]func(uint32) uint32{
		"neighbouring addresses": func(i uint32) uint32 { return bits.ReverseBytes32(0x0a000000 + i) },
		"neighbouring networks":  func(i uint32) uint32 { return 0x0a + i<<8 },
		"every 256th address":    func(i uint32) uint32 { return bits.ReverseBytes32(0x0a000001 + i<<8) },
	} {
		t.Run(what, func(t *testing.T) {
			if err := errors.Join(b.Apply(r.d), b.Flows().Drain(forget)); err != nil {
				t.Fatal(err)
			}
			r.send(1, address)
			var at, all int
			if err := b.Flows().Drain(func(batch flow.Batch) error {
				all += len(batch.Keys)
				if int(batch.Number&(1<<tableBits-1)) > ebpf.MustPossibleCPU() {
					at += len(batch.Keys)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if byChance := placedByChance(flows,
				min(fewestCells, int(placesOf(ebpf.MustPossibleCPU())))); all < flows || float64(at) < 0.98*byChance {
				t.Errorf("%s: of %d flows %d are at places", what, all, at)
			}
		})
	}
}

// If only four of many flows find a cell, they take fast slots from one another all the time, and each is counted
// exactly, in its slot and in the table.
func TestFlowsThatShareABucketAreCountedExactly(t *testing.T) {
	for _, flows := range []int{bucketCells + 1, 50} {
		t.Run(fmt.Sprintf("%d flows", flows), func(t *testing.T) { shareABucket(t, flows) })
	}
}

func shareABucket(t *testing.T, flows int) {
	const times = 400
	r := newFlowRig(t, flows)
	b := r.FrameBench
	if err := errors.Join(b.Apply(r.d), b.Flows().Drain(forget), b.Flows().Drain(forget)); err != nil {
		t.Fatal(err)
	}
	const cells = 4
	c, err := b.flows.control()
	if err != nil {
		t.Fatal(err)
	}
	for set, tables := range b.flows.tables {
		c.Places[set] = openPlaces(bits.Len(uint(tables.each/cells)) - 1)
	}
	if err := b.flows.setControl(c); err != nil {
		t.Fatal(err)
	}
	r.send(times, func(i uint32) uint32 { return i })
	all := &sorted{kept: newKept(t)}
	if err := b.Flows().Drain(all.add); err != nil {
		t.Fatal(err)
	}
	if len(all.flows) != flows || all.fromPlaces < times || all.fromTables < times {
		t.Errorf("%d flows, %d packets from places, %d from tables", len(all.flows), all.fromPlaces, all.fromTables)
	}
	for k, c := range all.flows {
		if c.Packets != times {
			t.Errorf("%d packets of %v, want %d", c.Packets, k.Src[:4], times)
		}
	}
}

// placedByChance returns how many flows are expected to find a cell, with 4 cells to a bucket: the number of flows per
// bucket has a Poisson distribution.
func placedByChance(flows, cells int) float64 {
	buckets := float64(cells) / 4
	mean := float64(flows) / buckets
	placed, left, p := 0.0, 1.0, math.Exp(-mean)
	for k := range 4 {
		placed, left = placed+float64(k)*p, left-p
		p *= mean / float64(k+1)
	}
	return buckets * (placed + 4*left)
}

// leaveAtPlaces leaves a flow of the previous round in every fast slot of the set that is not written now.
func leaveAtPlaces(t *testing.T, f *Flows) {
	t.Helper()
	c, err := f.control()
	if err != nil {
		t.Fatal(err)
	}
	left := abi.FlowPlace{Tag: (c.Round - 1) << 1, Flow: abi.Flow{Packets: 1000}}
	for _, p := range f.tables[(c.Round+1)&1].places {
		used := []uint64{uint64(uint32(c.Round-1))<<32 | uint64(p.count())}
		for i := range p.count() {
			cell := (uint32(c.Round-1)&0x7ff|0x800)<<20 | uint32(i)
			if _, err := p.memory.WriteAt(bytesOf([]uint32{cell}), firstCell+int64(i)*cellSize); err != nil {
				t.Fatal(err)
			}
			if _, err := p.memory.WriteAt(bytesOf([]abi.FlowPlace{left}), p.at(i)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.memory.WriteAt(bytesOf(used), usedAt); err != nil {
			t.Fatal(err)
		}
	}
}

// A process may die at any step for any of the tables: those of each CPU, and each CPU's fast slots.
func TestADrainOfPlacesThatIsKilledIsDoneAgain(t *testing.T) {
	testkit.Long(t, "kills drains at each place; TestAPlaceIsGivenAwayWhenItsFlowsAreDrained has a drain")
	testkit.Never(t)
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	all := &sorted{kept: newKept(t)}
	w := placed(1, 2)
	if err := life(t, host, dir, d, w, nil); err != nil {
		t.Fatal(err)
	}
	streams := []*numbered{startNumbered(t, guests[0], guests[1], 5000), startNumbered(t, guests[1], guests[0], 5000)}
	died := 0
	for _, step := range []string{"added", "removed"} {
		for nth := 1; nth <= 6; nth++ {
			k := inForce(t, host, dir, d, w)
			waitFor(t, k, 100)
			seen := 0
			k.flows.step = func(name string) error {
				if name == step {
					seen++
				}
				if seen == nth {
					return errDied
				}
				return nil
			}
			switch err := k.Flows().Drain(all.add); {
			case errors.Is(err, errDied):
				died++
			case err != nil:
				t.Fatal(err)
			}
			if err := k.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, s := range streams {
		s.end()
	}
	k := inForce(t, host, dir, d, w)
	defer k.Close()
	k.flows.inTables = true
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all.kept)
	if died < 4 || all.fromPlaces == 0 || all.fromTables == 0 {
		t.Errorf("%d drains died, %d packets came from places, %d from tables", died, all.fromPlaces, all.fromTables)
	}
}

// withoutPlaces turns an agent, and the state that it will leave, into one without fast slots.
func withoutPlaces(t *testing.T, k *Kernel) {
	t.Helper()
	for _, tables := range k.flows.tables {
		if err := closePlaces(tables.places); err != nil {
			t.Fatal(err)
		}
		clear(tables.places)
	}
	for i := range k.objects.FlowPlaces.MaxEntries() {
		if err := k.objects.FlowPlaces.Delete(i); err != nil {
			t.Fatal(err)
		}
	}
	delete(k.gen.layout.Tables, "flow_places")
	if err := errors.Join(k.gen.setPhase(complete), os.Remove(filepath.Join(k.gen.dir, "flow_places"))); err != nil {
		t.Fatal(err)
	}
}

// An agent that stops leaves its counts where an agent without fast slots also finds them, and one with fast slots
// takes over from one without: nothing is lost and nothing doubled.
func TestAnUpgradeFromAndToTablesWithoutPlacesLosesNoFlow(t *testing.T) {
	testkit.Never(t)
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	all := &sorted{kept: newKept(t)}
	drain := func(k *Kernel) {
		t.Helper()
		waitFor(t, k, 100)
		if err := k.Flows().Drain(all.add); err != nil {
			t.Fatal(err)
		}
	}
	k := inForce(t, host, dir, d, tweak{})
	s := startNumbered(t, guests[0], guests[1], 5000)
	for range 2 {
		drain(k)
		if err := k.Flows().Retire(); err != nil {
			t.Fatal(err)
		}
		drain(k)
		withoutPlaces(t, k)
		fromPlaces, fromTables := all.fromPlaces, all.fromTables
		drain(k)
		drain(k)
		if all.fromPlaces != fromPlaces || all.fromTables == fromTables {
			t.Errorf("%d packets came from places and %d from tables, where there were no places",
				all.fromPlaces-fromPlaces, all.fromTables-fromTables)
		}
		waitFor(t, k, 100)
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		k = inForce(t, host, dir, d, tweak{})
		drain(k)
		drain(k)
		if all.fromPlaces == fromPlaces {
			t.Error("the places are not used after the upgrade")
		}
	}
	defer k.Close()
	s.end()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all.kept)
	if out := all.at(k.slots.Ports[plan.PortID{Switch: "lab", Name: "vm2"}], flow.Egress); out.Packets < 1000 {
		t.Errorf("%d packets metered", out.Packets)
	}
}

// A program of a version with another layout of fast slots counts in the tables that both versions know: it does not
// use slots opened with the other layout.
func TestProgramsLeavePlacesOfAnotherLayoutAlone(t *testing.T) {
	host, guests, d := meteredPorts(t, 1000)
	all := &sorted{kept: newKept(t)}
	k := inForce(t, host, bpffs(t), d, tweak{spec: func(spec *ebpf.CollectionSpec) {
		if err := spec.Variables["places_layout"].Set(uint32(abi.PlacesLayout + 1)); err != nil {
			panic(err)
		}
	}})
	defer k.Close()
	s := startNumbered(t, guests[0], guests[1], 2000)
	waitFor(t, k, 100)
	s.end()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all.kept)
	if all.fromPlaces > 0 || all.fromTables < 100 {
		t.Errorf("%d packets came from places, %d from tables", all.fromPlaces, all.fromTables)
	}
}

// An agent that starts after another has stopped opens the fast slots again.
func TestPlacesAreUsedAgainByTheNextAgent(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	all := &sorted{kept: newKept(t)}
	if err := life(t, host, dir, d, tweak{}, func(k *Kernel) {
		if err := errors.Join(k.Flows().Retire(), k.Flows().Drain(all.add)); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	s := startNumbered(t, guests[0], guests[1], 2000)
	k := inForce(t, host, dir, d, tweak{})
	defer k.Close()
	for range 3 {
		waitFor(t, k, 100)
		if err := k.Flows().Drain(all.add); err != nil {
			t.Fatal(err)
		}
	}
	s.end()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all.kept)
	if all.fromPlaces == 0 {
		t.Error("nothing was counted at places")
	}
}
