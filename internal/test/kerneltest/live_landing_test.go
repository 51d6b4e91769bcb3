package kerneltest

import (
	"testing"
	"time"

	"heddle/internal/observe"
	"heddle/internal/plan"
)

// A MAC that came with a port is announced, and the physical network may send the announcement back by another uplink:
// the MAC stays where it is, although it was not heard on this host yet, and no copy of the frame is delivered.
func TestS50_S91_S92_AnAnnouncementThatComesBackIsNoMove(t *testing.T) {
	h := newHost(t, `
  uplinks: [{name: u1, device: dev1}, {name: u2, device: dev2}]
  defaults: {security: {forgedTransmits: accept, macLearning: {unicastFlooding: false}}}
  portGroups: [{name: learn, security: {macLearning: {enabled: true}}}]
`, "vm1 learn", "vm2 learn")
	id := plan.PortID{Switch: "s", Name: "vm1"}
	came := observe.MACEntry{MAC: plan.MAC(word("nest1")), Idle: 5}
	for deadline := time.Now().Add(patience); ; {
		given := time.Now()
		taken, err := h.k.Travel().Learn(id, []observe.MACEntry{came})
		if err != nil || len(taken) != 1 {
			t.Fatalf("%d MACs taken, %v", len(taken), err)
		}
		h.carry("u2", wire("all nest1 8035"))
		if time.Since(given) > shortCase && time.Now().Before(deadline) {
			list, err := h.k.MACs()
			if err == nil {
				_, err = h.k.ForgetMACs(list)
			}
			if err != nil {
				t.Fatal(err)
			}
			continue // a busy machine: the frame came back too late
		}
		break
	}
	list, err := h.k.MACs()
	if err != nil || len(list) != 1 || list[0].Port.Name != "vm1" || list[0].Idle < came.Idle {
		t.Fatalf("learned %+v, %v; want the MAC that came, not heard for %v s", list, err, came.Idle)
	}
	h.emit("vm2", "nest1 vm2 0800", to("vm1"))
	h.await("its announcement is long ago", func() bool {
		list, err := h.k.MACs()
		return err == nil && len(list) == 1 && list[0].Idle > came.Idle+1.1
	})
	h.carry("u2", wire("all nest1 8035")) // now it lives elsewhere
	if macs := h.table(); len(macs) != 0 {
		t.Errorf("still learned: %v", macs)
	}
}
