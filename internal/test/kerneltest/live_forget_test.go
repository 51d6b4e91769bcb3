package kerneltest

import (
	"slices"
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
		list, err := h.k.MACs()
		if err != nil {
			t.Fatal(err)
		}
		list = slices.DeleteFunc(list, func(e observe.MACEntry) bool { return !which(e) })
		removed, err := h.k.ForgetMACs(list)
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

// Each VLAN is a segment of its own, and so is each 802.1ad one: an address is removed where it was chosen, and one
// that has moved since it was listed stays.
func TestS13_AForgottenMACIsThatOfItsVLAN(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}]
  defaults: {security: {forgedTransmits: accept, macLearning: {enabled: true}}}
  portGroups:
  - {name: trunk, vlan: {trunk: ["0", "10-20"]}}
  - {name: provider, vlan: {trunk: ["10-20"], outer: 802.1ad}}
`, "vm1 trunk", "vm2 trunk", "vm3 provider")
	h.emit("vm1", "all nest1 0806", to("vm2 u1"))
	h.emit("vm1", "all nest1 q10 0806", to("vm2 u1"))
	h.emit("vm1", "all nest1 q11 0806", to("vm2 u1"))
	h.emit("vm3", "all nest1 ad10 0806", to("u1"))
	list, err := h.k.MACs()
	if err != nil || len(list) != 4 {
		t.Fatalf("%v: %v", err, list)
	}
	h.emit("vm2", "all nest1 q11 0806", to("vm1 u1")) // it moves
	for i, e := range list {
		stays := e.VLAN == 11
		removed, err := h.k.ForgetMACs(list[i : i+1])
		if err != nil || (len(removed) == 1) == stays {
			t.Errorf("%+v: %v removed, %v", e, removed, err)
		}
	}
	if left, err := h.k.MACs(); err != nil || len(left) != 1 || left[0].VLAN != 11 || left[0].Port.Name != "vm2" {
		t.Errorf("left: %v, %v", left, err)
	}
}
