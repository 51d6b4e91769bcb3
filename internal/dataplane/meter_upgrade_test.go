package dataplane

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"heddle/internal/flow"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// A program whose other tables have another layout continues to count in the same flow tables, at whatever step the
// process dies.
func TestAnUpgradeLosesNoFlow(t *testing.T) {
	testkit.Long(t, "upgrades under streams; TestAnUpgradeFromAndToTablesWithoutPlacesLosesNoFlow has upgrades")
	testkit.Never(t)
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	if err := life(t, host, dir, d, tweak{}, nil); err != nil {
		t.Fatal(err)
	}
	all := newKept(t)
	s := startNumbered(t, guests[0], guests[1], 5000)
	sizes := []func(*ebpf.CollectionSpec){nil, grown}
	for i, step := range []string{"made", "switching", "late", ""} {
		_ = life(t, host, dir, d, diesAt(step, sizes[(i+1)%2]), nil) // it dies at that step
		k := inForce(t, host, dir, d, tweak{spec: sizes[(i+1)%2]})
		waitFor(t, k, 100)
		if i == 1 {
			if err := k.Flows().Drain(all.add); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.end()
	k := inForce(t, host, dir, d, tweak{spec: sizes[0]})
	defer k.Close()
	drainAtRest(t, k, all.add)
	checkBooks(t, k, all)
}

// If the flow tables themselves have another layout, what was not drained is lost, and the log says so.
func TestAnUpgradeToOtherFlowTablesSaysWhatIsLost(t *testing.T) {
	dir := bpffs(t)
	host, guests, d := meteredPorts(t, 1000)
	if err := life(t, host, dir, d, tweak{}, nil); err != nil {
		t.Fatal(err)
	}
	s := startNumbered(t, guests[0], guests[1], 5000)
	var said bytes.Buffer
	other := tweak{spec: func(spec *ebpf.CollectionSpec) { spec.Maps["flow_rooms"].MaxEntries += 8 }}
	k := inForce(t, host, dir, d, tweak{})
	waitFor(t, k, 100)
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if err := host.Do(func() (err error) {
		if k, err = open(Options{PinDir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))}, other); err != nil {
			return err
		}
		return k.Apply(d)
	}); err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if !strings.Contains(said.String(), "are lost") || !strings.Contains(said.String(), "packets=") {
		t.Errorf("said: %s", said.String())
	}
	waitFor(t, k, 100)
	s.end()
	all := newKept(t)
	if err := k.Flows().Drain(all.add); err != nil {
		t.Fatal(err)
	}
	if out := all.at(k.slots.Ports[plan.PortID{Switch: "lab", Name: "vm2"}], flow.Egress); out.Packets < 100 {
		t.Errorf("%d packets metered since", out.Packets)
	}
}

// A slot that a port gave up is reused only after its counts have been drained, even by a process that was started
// since.
func TestAPlaceIsGivenAwayWhenItsFlowsAreDrained(t *testing.T) {
	dir := bpffs(t)
	host, _, d := meteredPorts(t, 1000)
	ports := d.Plan.Switches[0].Ports
	vm1, vm3 := ports[0].ID, plan.PortID{Switch: "lab", Name: "vm3"}
	k := inForce(t, host, dir, d, tweak{})
	slot := k.slots.Ports[vm1]
	change := func(with ...*plan.Port) {
		t.Helper()
		d.Plan.Switches[0].Ports = with
		if err := host.Do(func() error { return k.Apply(d) }); err != nil {
			t.Fatal(err)
		}
	}
	change(ports[1])
	again := func() {
		t.Helper()
		if err := k.Close(); err != nil {
			t.Fatal(err)
		}
		k = inForce(t, host, dir, d, tweak{})
	}
	defer func() { k.Close() }()
	again()
	if p := k.Flows().Points()[uint16(slot)]; p.ID != vm1 || p.Number != ports[0].Number {
		t.Errorf("the point of the port that is gone is %+v", p)
	}
	third := *ports[0]
	third.ID, third.Number, third.InitialMAC = vm3, 3, plan.MAC{2, 0, 0, 0, 0, 3}
	change(ports[1], &third)
	if k.slots.Ports[vm3] == slot {
		t.Error("the place was given away before its flows were drained")
	}
	change(ports[1])
	if err := k.Flows().Drain(newKept(t).add); err != nil {
		t.Fatal(err)
	}
	if _, still := k.Flows().Points()[uint16(slot)]; still {
		t.Error("the point is there when nothing is left of it")
	}
	change(ports[1], &third)
	if k.slots.Ports[vm3] != slot {
		t.Errorf("the free place is not used: slot %d", k.slots.Ports[vm3])
	}
}
