package dataplane

import (
	"testing"

	"github.com/cilium/ebpf"

	"heddle/internal/abi"
)

// While a port learns, a sweep visits all learned entries. If no port learns after a change, no entry is left, and
// sweeps visit none.
func TestD5_SweepsAreSparedWhileNoPortLearns(t *testing.T) {
	dir := bpffs(t)
	host, _, d := twoPorts(t)
	key, port := abi.MACKey{Segment: 1, MAC: [6]uint8{2, 0, 0, 0, 9, 9}}, d.Plan.Switches[0].Ports[0]
	k := inForce(t, host, dir, d, tweak{})
	defer k.Close()
	learned := func() int {
		t.Helper()
		n := 0
		var e abi.Learned
		for all := k.objects.Macs.Iterate(); all.Next(&key, &e); {
			n++
		}
		return n
	}
	forget := func() { // an entry that no look-up would use
		t.Helper()
		if err := k.objects.Macs.Update(key, abi.Learned{Slot: abi.MaxPorts - 1}, ebpf.UpdateAny); err != nil {
			t.Fatal(err)
		}
	}
	for _, learns := range []bool{true, false, true} {
		forget()
		port.Policy.Learning.Enabled.V = learns
		if err := host.Do(func() error { return k.Apply(d) }); err != nil {
			t.Fatal(err)
		}
		if n := learned(); n != 0 {
			t.Errorf("learning %t: %d entries are left behind a change", learns, n)
		}
		forget()
		removed, err := k.Sweep()
		if err != nil {
			t.Fatal(err)
		}
		if left := learned(); learns && (removed != 1 || left != 0) || !learns && (removed != 0 || left != 1) {
			t.Errorf("learning %t: a sweep removed %d entries, %d are left", learns, removed, left)
		}
	}
}
