package kerneltest

import (
	"testing"

	"heddle/internal/observe"
	"heddle/internal/plan"
)

// An address that is removed by hand is as one that was never heard, and takes none of its port's limit any more.
func TestS13_S15_AForgottenMACIsAsOneNeverHeard(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  defaults: {security: {forgedTransmits: accept, macLearning: {limit: 2, limitPolicy: drop, unicastFlooding: false}}}
  portGroups: [{name: learn, security: {macLearning: {enabled: true}}}, {name: plain}]
`, "vm1 learn", "vm2 learn", "vm3 plain")
	h.emit("vm1", "all nest1 0806", to("vm2 vm3 u1"))
	h.emit("vm1", "all nest2 0806", to("vm2 vm3 u1"))
	h.emit("vm2", "all nest3 0806", to("vm1 vm3 u1"))
	h.emit("vm3", "nest1 vm3 0800", to("vm1"))
	one := func(name string) func(observe.MACEntry) bool {
		return func(e observe.MACEntry) bool { return e.MAC == plan.MAC(word(name)) }
	}
	forget := func(which func(observe.MACEntry) bool, want int) {
		t.Helper()
		removed, err := h.k.ForgetMACs(which, 10)
		if err != nil || len(removed) != want {
			t.Fatalf("removed %v, %v; want %d", removed, err, want)
		}
	}
	forget(one("nest1"), 1)
	forget(one("nest1"), 0)
	if n := h.counters()["vm1"].MACsHeld; n != 1 {
		t.Errorf("the port holds %d MACs, want the other one", n)
	}
	h.emit("vm3", "nest1 vm3 0800", to("u1"))
	h.emit("vm3", "nest2 vm3 0800", to("vm1"))
	h.emit("vm1", "all nest4 0806", to("vm2 vm3 u1")) // within the limit again
	h.emit("vm3", "nest4 vm3 0800", to("vm1"))
	forget(func(e observe.MACEntry) bool { return e.Port.Name == "vm1" }, 2)
	h.emit("vm3", "nest3 vm3 0800", to("vm2"))
	forget(func(observe.MACEntry) bool { return true }, 1)
	if macs := h.table(); len(macs) != 0 {
		t.Errorf("still learned: %v", macs)
	}
	for _, name := range []string{"vm1", "vm2"} {
		if n := h.counters()[name].MACsHeld; n != 0 {
			t.Errorf("%s holds %d MACs", name, n)
		}
	}
}
