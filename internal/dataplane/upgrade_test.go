package dataplane

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
	"heddle/internal/binding"
	"heddle/internal/lab/netns"
	"heddle/internal/lab/traffic"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// grown makes the tables of a program larger.
func grown(spec *ebpf.CollectionSpec) {
	spec.Maps["macs"].MaxEntries *= 2
	spec.Maps["counts"].MaxEntries += 64
	spec.Maps["own_marks"].MaxEntries += 64
	spec.Maps["rare_counts"].MaxEntries += 64
}

var errDied = errors.New("the process died here")

// diesAt makes a program of the given size die at a step; "" means none.
func diesAt(step string, size func(*ebpf.CollectionSpec)) tweak {
	return tweak{spec: size, step: func(name string) error {
		if name == step {
			return errDied
		}
		return nil
	}}
}

// life opens the instance, activates the plan and closes it again, like a process that starts and ends.
func life(t *testing.T, host *netns.NS, dir string, d binding.Desired, w tweak, look func(*Kernel)) error {
	t.Helper()
	var k *Kernel
	err := host.Do(func() (err error) {
		if k, err = open(Options{PinDir: dir}, w); err != nil {
			return err
		}
		return k.Apply(d)
	})
	if err == nil && look != nil {
		look(k)
	}
	if k != nil {
		err = errors.Join(err, k.Close())
	}
	return err
}

const (
	seededMACs    = 500
	seededDrops   = 7
	seededRefused = 5
	// rare is a reason that is counted once for all CPUs.
	rare = abi.ReasonsPerCPU + abi.ReasonsRare - 1
)

// seed gives vm1 learned MACs, and a drop with a rare reason.
func seed(t *testing.T, k *Kernel) {
	t.Helper()
	now, err := k.ticks()
	if err != nil {
		t.Fatal(err)
	}
	var counted abi.RareCounters
	counted.Drops[rare-abi.ReasonsPerCPU], counted.Refused[rare-abi.ReasonsPerCPU] = seededDrops, seededRefused
	if err := k.objects.RareCounts.Put(k.slots.Ports[plan.PortID{Switch: "lab", Name: "vm1"}], &counted); err != nil {
		t.Fatal(err)
	}
	for i := range seededMACs {
		in := abi.CarriedMAC{Entry: abi.Learned{Seen: now,
			Slot: k.slots.Ports[plan.PortID{Switch: "lab", Name: "vm1"}]}}
		in.Key = abi.MACKey{Segment: uint32(k.slots.Switches["lab"]+1)<<16 | 100,
			MAC: [6]uint8{2, 1, 0, 0, uint8(i >> 8), uint8(i)}}
		if _, err := k.objects.HeddleCarry.Run(&ebpf.RunOptions{Context: bytesOf([]abi.CarriedMAC{in})}); err != nil {
			t.Fatal(err)
		}
	}
}

// numbered is a stream of numbered packets between two guests that runs until finish.
type numbered struct {
	t    *testing.T
	sink *traffic.Sink
	stop context.CancelFunc
	sent chan error
}

func startNumbered(t *testing.T, from, to guest, perSecond float64) *numbered {
	t.Helper()
	sink, err := traffic.Listen(traffic.Endpoint{NS: to.ns}, traffic.SinkOptions{Kind: traffic.KindUDP,
		At: netip.AddrPortFrom(netip.MustParseAddr(to.addr), 0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	n := &numbered{t: t, sink: sink, stop: stop, sent: make(chan error, 1)}
	go func() {
		_, err := traffic.Send(ctx, traffic.Endpoint{NS: from.ns}, traffic.Load{Kind: traffic.KindUDP, Rate: perSecond},
			sink.Addr())
		n.sent <- err
	}()
	t.Cleanup(stop)
	return n
}

// finish fails the test when a packet was lost, doubled or overtaken.
func (n *numbered) finish() traffic.Received {
	n.t.Helper()
	p := n.end()
	if p.Reordered > 0 {
		n.t.Errorf("packets %+v", p)
	}
	return p
}

// end fails the test if a packet was lost or doubled. Packets may be reordered when the sender moves to another CPU.
func (n *numbered) end() traffic.Received {
	n.t.Helper()
	n.stop()
	if err := <-n.sent; err != nil {
		n.t.Error(err)
	}
	res, err := n.sink.Finish()
	if err != nil {
		n.t.Fatal(err)
	}
	p := *res.Packets
	if !p.Complete || p.Sent == 0 || p.Lost+p.Duplicated > 0 {
		n.t.Errorf("packets %+v", p)
	}
	return p
}

// checkCarried checks that vm1 has the same after every life: its learned MACs, and the count of every frame that it
// sent.
func checkCarried(t *testing.T, k *Kernel, least uint64) (received uint64) {
	t.Helper()
	macs, err := k.MACs()
	if err != nil || len(macs) != seededMACs {
		t.Errorf("%d MACs, %v", len(macs), err)
	}
	counters, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	c := counters[plan.PortID{Switch: "lab", Name: "vm1"}]
	if c.MACsHeld != seededMACs {
		t.Errorf("%d MACs held", c.MACsHeld)
	}
	if c.Received() < least {
		t.Errorf("%d frames counted, there were %d before", c.Received(), least)
	}
	if c.Drops[rare] != seededDrops || c.Refused[rare] != seededRefused {
		t.Errorf("%d drops and %d refused copies for a rare reason, want %d and %d", c.Drops[rare], c.Refused[rare],
			seededDrops, seededRefused)
	}
	dirs, err := filepath.Glob(filepath.Join(k.dir, generationPrefix+"*"))
	if err != nil || len(dirs) != 1 {
		t.Errorf("generations %v, %v", dirs, err)
	}
	return c.Received()
}

// A program with larger tables, and one with smaller ones, takes over from the other under traffic; and if it dies on
// the way, whichever of the two starts next continues.
func TestAnUpgradeLosesNothingWhereverItDies(t *testing.T) {
	testkit.Long(t, "dies at each place of an upgrade; TestAnUpgradeFromAndToTablesWithoutPlacesLosesNoFlow has "+
		"upgrades")
	testkit.Never(t)
	dir := bpffs(t)
	host, guests, d := twoPorts(t)
	for _, p := range d.Plan.Switches[0].Ports {
		p.Policy.Learning.Enabled.V, p.Policy.Learning.Limit.V, p.Policy.ForgedTransmits.V = true, seededMACs, true
	}
	sizes := []func(*ebpf.CollectionSpec){nil, grown}
	if err := life(t, host, dir, d, tweak{}, func(k *Kernel) { seed(t, k) }); err != nil {
		t.Fatal(err)
	}
	s := startNumbered(t, guests[0], guests[1], 5000)
	present, counted := 0, uint64(0)
	for _, step := range []string{"described", "made", "filled", "planned", "switching", "exchanged", "late",
		"complete", ""} {
		for _, backwards := range []bool{false, true} {
			if err := life(t, host, dir, d, diesAt(step, sizes[1-present]), nil); step != "" &&
				!errors.Is(err, errDied) || step == "" && err != nil {
				t.Fatalf("dies at %q: %v", step, err)
			}
			if !backwards {
				present = 1 - present
			}
			if err := life(t, host, dir, d, tweak{spec: sizes[present]}, func(k *Kernel) {
				counted = checkCarried(t, k, counted)
			}); err != nil {
				t.Fatalf("after dying at %q, back %v: %v", step, backwards, err)
			}
			if t.Failed() {
				t.Fatalf("after dying at %q, back %v", step, backwards)
			}
		}
	}
	p := s.finish()
	var last observe.Counters
	if err := life(t, host, dir, d, tweak{spec: sizes[present]}, func(k *Kernel) {
		all, err := k.Counters()
		if err != nil {
			t.Fatal(err)
		}
		last = all[plan.PortID{Switch: "lab", Name: "vm2"}]
	}); err != nil {
		t.Fatal(err)
	}
	if out := last.PacketsOut[abi.ClassUnicast]; out < p.Received {
		t.Errorf("%d packets received, %d counted as delivered to the port", p.Received, out)
	}
	t.Logf("%d packets over 18 deaths, none lost", p.Sent)
}

func TestADowngradeWithoutRoomIsRefusedAndChangesNothing(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := twoPorts(t)
	for _, p := range d.Plan.Switches[0].Ports {
		p.Policy.Learning.Enabled.V, p.Policy.Learning.Limit.V = true, seededMACs
	}
	if err := life(t, host, dir, d, tweak{}, func(k *Kernel) { seed(t, k) }); err != nil {
		t.Fatal(err)
	}
	before := pins(t, dir)
	s := startNumbered(t, guests[0], guests[1], 1000)
	for what, shrink := range map[string]func(*ebpf.CollectionSpec){
		"learned MACs": func(s *ebpf.CollectionSpec) { s.Maps["macs"].MaxEntries = 100 },
		"ports":        func(s *ebpf.CollectionSpec) { s.Maps["port_names"].MaxEntries = 2 },
	} {
		t.Run(what, func(t *testing.T) {
			err := life(t, host, dir, d, tweak{spec: shrink}, nil)
			if err == nil || !strings.Contains(err.Error(), "can hold") || !strings.Contains(err.Error(), what) {
				t.Errorf("no room for %s: %v", what, err)
			}
			if after := pins(t, dir); after != before {
				t.Errorf("pins before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
	s.finish()
}

func pins(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, "\n")
}

// Programs from before tables had descriptions pinned them in the directory itself.
func TestTablesFromBeforeTheyWereDescribedAreTakenOver(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := twoPorts(t)
	for _, p := range d.Plan.Switches[0].Ports {
		p.Policy.Learning.Enabled.V, p.Policy.Learning.Limit.V = true, seededMACs
	}
	if err := life(t, host, dir, d, tweak{}, func(k *Kernel) { seed(t, k) }); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(dir, generationPrefix+"1")
	entries, err := os.ReadDir(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Rename(filepath.Join(first, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, recordPin)), os.Remove(filepath.Join(dir, "counts_before")),
		os.Remove(first)); err != nil {
		t.Fatal(err)
	}
	s := startNumbered(t, guests[0], guests[1], 1000)
	if err := life(t, host, dir, d, tweak{}, func(k *Kernel) { checkCarried(t, k, 0) }); err != nil {
		t.Fatal(err)
	}
	s.finish()
	if _, err := os.Stat(filepath.Join(dir, "control")); !os.IsNotExist(err) {
		t.Errorf("the old tables are left: %v", err)
	}
}

func TestRecordsAreConvertedFieldByField(t *testing.T) {
	from := record{{"seen", 0, 8}, {"slot", 8, 4}, {"gone", 12, 4}, {"drops", 16, 8}}
	to := record{{"slot", 0, 4}, {"extra", 4, 4}, {"seen", 8, 8}, {"drops", 16, 16}}
	got := convert([]byte("SEENSEENslotgoneDROPDROP"), from, to, 32)
	want := "slot\x00\x00\x00\x00SEENSEENDROPDROP" + strings.Repeat("\x00", 8)
	if string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
	if back := convert(got, to, from, 24); string(back) != "SEENSEENslot\x00\x00\x00\x00DROPDROP" {
		t.Errorf("back: %q", back)
	}
}

func TestWhichTablesAreUsed(t *testing.T) {
	own := layout{Meaning: 1}
	g := func(n int, p phase, l layout) *generation {
		return &generation{number: n, phase: p, layout: l, record: &ebpf.Map{}}
	}
	other := layout{Meaning: 2}
	for _, c := range []struct {
		what              string
		all               []*generation
		adopt, from, dead int
		next              int
	}{
		{"none", nil, 0, 0, 0, 1},
		{"own", []*generation{g(3, complete, own)}, 3, 0, 0, 4},
		{"another's", []*generation{g(3, complete, other)}, 0, 1, 0, 4},
		{"died while filling", []*generation{g(3, complete, own), g(4, filling, other)}, 3, 0, 1, 5},
		{"died while switching", []*generation{g(3, complete, own), g(4, switching, other)}, 0, 2, 0, 5},
		{"died before removing", []*generation{g(3, complete, other), g(4, complete, own)}, 4, 0, 1, 5},
		{"the first died", []*generation{g(1, filling, own)}, 0, 0, 1, 2},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := choose(c.all, own)
			adopt := 0
			if got.adopt != nil {
				adopt = got.adopt.number
			}
			if adopt != c.adopt || len(got.from) != c.from || len(got.dead) != c.dead || got.next != c.next {
				t.Errorf("%s: %+v", c.what, got)
			}
		})
	}
}

func TestD27_AnUpgradeKeepsWhatPortsHaveSpent(t *testing.T) {
	dir := bpffs(t)
	host, _, d := twoPorts(t)
	vm1 := plan.PortID{Switch: "lab", Name: "vm1"}
	want := abi.StormBucket{Word: [3]uint64{1<<32 | 3000, 0, 7<<32 | 1000}}
	err := life(t, host, dir, d, tweak{}, func(k *Kernel) {
		if err := k.objects.StormBuckets.Put(k.slots.Ports[vm1], &want); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []func(*ebpf.CollectionSpec){grown, nil} {
		err := life(t, host, dir, d, tweak{spec: size}, func(k *Kernel) {
			var got abi.StormBucket
			if err := k.objects.StormBuckets.Lookup(k.slots.Ports[vm1], &got); err != nil || got != want {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	d.Plan.Switches[0].Ports = d.Plan.Switches[0].Ports[1:] // vm1 is removed, and another port gets its slot
	fresh := *d.Plan.Switches[0].Ports[0]
	fresh.ID, fresh.Number, fresh.InitialMAC = plan.PortID{Switch: "lab", Name: "vm3"}, 3, plan.MAC{2, 0, 0, 0, 0, 9}
	if err := life(t, host, dir, d, tweak{}, nil); err != nil {
		t.Fatal(err)
	}
	d.Plan.Switches[0].Ports = append(d.Plan.Switches[0].Ports, &fresh)
	err = life(t, host, dir, d, tweak{}, func(k *Kernel) {
		var got abi.StormBucket
		if err := k.objects.StormBuckets.Lookup(k.slots.Ports[fresh.ID], &got); err != nil ||
			got != (abi.StormBucket{}) {
			t.Errorf("a new port has spent %v, %v", got, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestS111_AnUpgradeKeepsWhereABondsMACIs(t *testing.T) {
	dir := bpffs(t)
	host, _, d := twoPorts(t)
	vm1, vm2 := d.Plan.Switches[0].Ports[0], d.Plan.Switches[0].Ports[1]
	for _, p := range []*plan.Port{vm1, vm2} {
		policy := *p.Policy
		policy.ForgedTransmits.V, policy.MACChanges.V = true, true
		p.Owner, p.Policy = "guest", &policy
	}
	quiet := plan.MAC{2, 0, 0, 0, 0, 0x77} // nobody sends from it: the guests of the test have other MACs
	vm1.InitialMAC = quiet
	want := []observe.Speaker{{Owner: vm1.ID, MAC: quiet, Port: vm2.ID}}
	err := life(t, host, dir, d, tweak{}, func(k *Kernel) {
		var mac [8]byte
		copy(mac[:], quiet[:])
		word := binary.LittleEndian.Uint64(mac[:]) | uint64(k.slots.Ports[vm2.ID])<<abi.SpeakerSlotShift
		if err := k.objects.Speakers.Put(k.slots.Ports[vm1.ID], &abi.Speaker{Word: word, Since: 7}); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []func(*ebpf.CollectionSpec){grown, nil} {
		err := life(t, host, dir, d, tweak{spec: size}, func(k *Kernel) {
			if got, err := k.Speakers(); err != nil || !slices.Equal(got, want) {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	vm2.Owner = "another" // the record is void once they are no longer siblings
	err = life(t, host, dir, d, tweak{}, func(k *Kernel) {
		if got, err := k.Speakers(); err != nil || len(got) > 0 {
			t.Errorf("%v, %v", got, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
