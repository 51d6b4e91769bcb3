package dataplane

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/flow"
	"heddle/internal/lab/netns"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// kept stores flows as flow.Batch describes: each flow has the number of the batch that was added last.
type kept struct {
	t      *testing.T
	flows  map[flow.Key]flow.Counts
	number map[flow.Key]uint64
	last   uint64
	// seen is the content of the last batch number, so that a repeat can be compared.
	seen map[flow.Key]flow.Counts
}

func newKept(t *testing.T) *kept {
	return &kept{t: t, flows: map[flow.Key]flow.Counts{}, number: map[flow.Key]uint64{},
		seen: map[flow.Key]flow.Counts{}}
}

func (k *kept) add(b flow.Batch) error {
	k.t.Helper()
	if b.Number < k.last {
		k.t.Errorf("batch %d after %d", b.Number, k.last)
	}
	if b.Number > k.last {
		clear(k.seen)
	}
	k.last = b.Number
	for i, key := range b.Keys {
		c := b.Counts[i]
		if was, ok := k.seen[key]; ok && (was.Packets != c.Packets || was.Bytes != c.Bytes ||
			was.FrameBytes != c.FrameBytes) {
			k.t.Errorf("batch %d came again with %+v, was %+v", b.Number, c, was)
		}
		k.seen[key] = c
		if k.number[key] == b.Number {
			continue
		}
		k.number[key] = b.Number
		all := k.flows[key]
		all.Add(c)
		k.flows[key] = all
	}
	return nil
}

// at sums what was metered at a point in one direction.
func (k *kept) at(slot uint32, d flow.Direction) (c flow.Counts) {
	for key, x := range k.flows {
		if key.Point == uint16(slot) && key.Direction == d {
			c.Add(x)
		}
	}
	return c
}

// meteredPorts are two guests whose ports are metered in both directions.
func meteredPorts(t *testing.T, maxFlows int) (*netns.NS, []guest, binding.Desired) {
	t.Helper()
	host, guests, d := twoPorts(t)
	sw := d.Plan.Switches[0]
	sw.IPFIX.MaxFlows = maxFlows
	for _, p := range sw.Ports {
		p.Policy.Monitoring.IPFIX.V, p.Policy.Monitoring.Observe.V = true, spec.ObserveBoth
	}
	return host, guests, d
}

func inForce(t *testing.T, host *netns.NS, dir string, d binding.Desired, w tweak) *Kernel {
	t.Helper()
	var k *Kernel
	if err := host.Do(func() (err error) {
		if k, err = open(Options{PinDir: dir}, w); err != nil {
			return err
		}
		return k.Apply(d)
	}); err != nil {
		t.Fatal(err)
	}
	return k
}

// checkBooks compares what was metered with the ports' counters, to the packet and the byte: the caller makes sure that
// no frame is on its way.
func checkBooks(t *testing.T, k *Kernel, all *kept) {
	t.Helper()
	counters, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for id, slot := range k.slots.Ports {
		c, in, out := counters[id], all.at(slot, flow.Ingress), all.at(slot, flow.Egress)
		if in.Packets != c.Delivered || in.FrameBytes != total(c.BytesIn) {
			t.Errorf("%s: metered %d packets, %d bytes from it; %d of %d bytes were delivered", id, in.Packets,
				in.FrameBytes, c.Delivered, total(c.BytesIn))
		}
		if out.Packets != total(c.PacketsOut) || out.FrameBytes != total(c.BytesOut) {
			t.Errorf("%s: metered %d packets, %d bytes to it; %d of %d bytes were handed over", id, out.Packets,
				out.FrameBytes, total(c.PacketsOut), total(c.BytesOut))
		}
	}
}

// drainAtRest drains until no frame has passed meanwhile, so that the metered packets are those that the ports have
// counted: guests sometimes send frames by themselves.
func drainAtRest(t *testing.T, k *Kernel, add func(flow.Batch) error) {
	t.Helper()
	for range 200 {
		before, err := k.Counters()
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Flows().Drain(add); err != nil {
			t.Fatal(err)
		}
		after, err := k.Counters()
		if err != nil {
			t.Fatal(err)
		}
		if maps.EqualFunc(before, after, func(a, b observe.Counters) bool {
			return a.Delivered == b.Delivered && a.PacketsOut == b.PacketsOut && a.PacketsIn == b.PacketsIn
		}) {
			return
		}
	}
	t.Fatal("the ports do not come to rest")
}

func TestEveryPacketOfAStreamIsDrainedOnce(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	k := inForce(t, host, dir, d, tweak{})
	defer k.Close()
	all := newKept(t)
	s := startNumbered(t, guests[0], guests[1], 50_000)
	for range 40 {
		if err := k.Flows().Drain(all.add); err != nil {
			t.Fatal(err)
		}
	}
	p := s.end()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all)
	if losses, err := k.Flows().Losses(); err != nil || len(losses) > 0 {
		t.Errorf("losses %v, %v", losses, err)
	}
	for key, c := range all.flows {
		if key.Point == uint16(k.slots.Ports[plan.PortID{Switch: "lab", Name: "vm2"}]) &&
			key.Direction == flow.Egress && key.Protocol == 17 && c.Packets >= p.Received {
			t.Logf("%d packets of %d in %d drains", c.Packets, p.Sent, 41)
			return
		}
	}
	t.Errorf("no flow has the %d packets of the stream: %+v", p.Received, all.flows)
}

func TestADrainThatIsKilledIsDoneAgain(t *testing.T) {
	testkit.Long(t, "kills drains at each place; TestEveryPacketOfAStreamIsDrainedOnce has a drain")
	testkit.Never(t)
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	all := newKept(t)
	s := startNumbered(t, guests[0], guests[1], 5000)
	if err := life(t, host, dir, d, tweak{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"flipped", "added", "removed", "emptied", "resized", "", "flipped", "added"} {
		k := inForce(t, host, dir, d, tweak{})
		waitFor(t, k, 200)
		k.flows.step = diesAt(step, nil).step
		if err := k.Flows().Drain(all.add); step != "" && !errors.Is(err, errDied) || step == "" && err != nil {
			t.Fatalf("dies at %q: %v", step, err)
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.end()
	k := inForce(t, host, dir, d, tweak{})
	defer k.Close()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all)
}

// waitFor waits until that many more packets have passed.
func waitFor(t *testing.T, k *Kernel, packets uint64) {
	t.Helper()
	var first uint64
	began := time.Now()
	for i := 0; time.Since(began) < 2*time.Minute; i++ {
		c, err := k.Counters()
		if err != nil {
			t.Fatal(err)
		}
		out := c[plan.PortID{Switch: "lab", Name: "vm2"}].PacketsOut[abi.ClassUnicast]
		if i == 0 {
			first = out
		}
		if out >= first+packets {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("no packets pass")
}

func TestAnErrorOfWhoAddsLosesNothing(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	k := inForce(t, host, dir, d, tweak{})
	defer k.Close()
	all, refuse := newKept(t), errors.New("no room")
	s := startNumbered(t, guests[0], guests[1], 5000)
	for i := range 12 {
		waitFor(t, k, 50)
		added := 0
		err := k.Flows().Drain(func(b flow.Batch) error {
			if added++; added > i%3 {
				return refuse
			}
			return all.add(b)
		})
		if err != nil && !errors.Is(err, refuse) {
			t.Fatal(err)
		}
	}
	s.end()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all)
}

func TestWithoutMeteringThereAreNoTables(t *testing.T) {
	dir := bpffs(t)
	host, _, d := meteredPorts(t, 1000)
	tables := func(k *Kernel) (n int) {
		for _, outer := range []*ebpf.Map{k.objects.Flows, k.objects.WideFlows, k.objects.SharedFlows,
			k.objects.FlowPlaces} {
			for i := range outer.MaxEntries() {
				m, err := innerMap(outer, i)
				if err != nil {
					t.Fatal(err)
				}
				if m != nil {
					n++
					m.Close()
				}
			}
		}
		return n
	}
	policy := func(on bool) {
		for _, p := range d.Plan.Switches[0].Ports {
			p.Policy.Monitoring.IPFIX.V = on
		}
	}
	all := 2 * (3*ebpf.MustPossibleCPU() + 1)
	policy(false)
	for _, on := range []bool{false, true, false, true} {
		policy(on)
		k := inForce(t, host, dir, d, tweak{})
		if err := k.Flows().Drain(newKept(t).add); err != nil {
			t.Error(err)
		}
		want := 0
		if on {
			want = all
		}
		if n := tables(k); n != want {
			t.Errorf("metering %v: %d tables, want %d", on, n, want)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}

// total sums the classes of frames.
func total(classes [abi.Classes]uint64) (n uint64) {
	for _, c := range classes {
		n += c
	}
	return n
}
