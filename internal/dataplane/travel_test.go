package dataplane

import (
	"reflect"
	"testing"
	"time"

	"heddle/internal/abi"
	"heddle/internal/observe"
	"heddle/internal/plan"
)

// What travels with a port is the same on the next host, and on the one after that: no MAC is given twice, displaced or
// given above the limit, and no frame that storm control has charged becomes free.
func TestS79_MACsAndStormCreditTravel(t *testing.T) {
	vm1, vm2 := plan.PortID{Switch: "lab", Name: "vm1"}, plan.PortID{Switch: "lab", Name: "vm2"}
	host, _, d := twoPorts(t)
	for _, p := range d.Plan.Switches[0].Ports {
		p.Policy.Learning.Enabled.V, p.Policy.Learning.Limit.V, p.Policy.ForgedTransmits.V = true, seededMACs, true
	}
	var macs []observe.MACEntry
	spent := []observe.Spent{{Class: abi.ClassBroadcast, Billionths: 7_500_000_000}}
	pack := func(k *Kernel) {
		read, err := k.Travel().MACs(vm1)
		if err != nil || read == nil {
			t.Fatalf("MACs are not read: %v", err)
		}
		if macs, err = read(); err != nil || len(macs) != seededMACs {
			t.Fatalf("%d MACs, %v", len(macs), err)
		}
		got, err := k.Travel().Spent(vm1)
		if err != nil || len(got) != 1 {
			t.Fatalf("spent %+v, %v", got, err)
		}
		got[0].Idle = 0 // it grows
		if !reflect.DeepEqual(got, spent) {
			t.Errorf("spent %+v, want %+v", got, spent)
		}
		if read, err := k.Travel().MACs(vm2); err != nil || read != nil {
			t.Errorf("another port has MACs, %v", err)
		}
	}
	if err := life(t, host, bpffs(t), d, tweak{}, func(k *Kernel) {
		seed(t, k)
		if _, err := k.Travel().Spend(vm1, spent); err != nil {
			t.Fatal(err)
		}
		pack(k)
	}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"second", "third"} {
		if err := life(t, host, bpffs(t), d, tweak{}, func(k *Kernel) {
			unpack(t, k, vm1, vm2, macs)
			if _, err := k.Travel().Spend(vm1, spent); err != nil {
				t.Fatal(err)
			}
			pack(k)
		}); err != nil {
			t.Fatalf("%s host: %v", n, err)
		}
	}
}

// unpack gives a port MACs on a host on which the other port has one of them already.
func unpack(t *testing.T, k *Kernel, to, other plan.PortID, macs []observe.MACEntry) {
	t.Helper()
	learn := func(id plan.PortID, list []observe.MACEntry, want int) {
		t.Helper()
		if took, err := k.Travel().Learn(id, list); err != nil || len(took) != want {
			t.Errorf("port %s took %d of %d MACs, want %d (%v)", id.Name, len(took), len(list), want, err)
		}
	}
	aged := append([]observe.MACEntry(nil), macs...)
	aged[1].Idle = (20 * time.Minute).Seconds() // longer than the port keeps MACs
	learn(other, aged[:1], 1)
	learn(to, aged, seededMACs-2)
	learn(to, aged, 0)
	if all, err := k.MACs(); err != nil || len(all) != seededMACs-1 {
		t.Errorf("%d MACs, %v", len(all), err)
	}
	ours := aged[0]
	ours.Switch, ours.Port = other.Switch, other
	if removed, err := k.ForgetMACs([]observe.MACEntry{ours}); err != nil || len(removed) != 1 {
		t.Errorf("the other port lost its MAC: %v", err)
	}
	more := []observe.MACEntry{macs[0], macs[1], {VLAN: 100, MAC: plan.MAC{2, 7, 7, 7, 7, 7}}}
	learn(to, more, 2) // the third is above the limit
	learn(plan.PortID{Switch: "lab", Name: "gone"}, more, 0)
	counters, err := k.CounterReader().Read(to)
	if err != nil || counters.MACsHeld != seededMACs {
		t.Errorf("%d MACs held, %v", counters.MACsHeld, err)
	}
}
