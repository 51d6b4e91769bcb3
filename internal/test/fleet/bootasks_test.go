package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heddle/internal/agent/cluster"
	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// A host boots after a guest of it was started on another host. What the host does with that guest depends on whether
// the guest runs there already, and on whether a controller answers in time.
func TestS100_S103_AHostThatBootsAsksFirst(t *testing.T) {
	testkit.Long(t, "boots a host in each situation; TestS103_AFleetGoesOnWhileItsControllerIsAway boots one")
	t.Parallel()
	f := newPortFleet(t)
	const vm = 3
	port, mac := fmt.Sprintf("m%d", vm), plan.MAC(fleetMAC(0, vm)).String()
	first := f.mustStartVM(0, vm, port, "fixed", "--mac", mac)

	t.Run("no controller answers, and it goes by its slice", func(t *testing.T) {
		row := *f
		row.t = t
		thaw := row.controller.Freeze()
		t.Cleanup(thaw) // also where this row fails
		booted := row.bootsWithout(vm, port)
		for range 20 { // a start that takes long by itself shows nothing
			if time.Since(booted) < cluster.BootTime/2 {
				break
			}
			booted = row.bootsWithout(vm, port)
		}
		if err := row.startVM(0, vm, port, "fixed", "--mac", mac); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(booted); waited < cluster.BootTime {
			t.Errorf("the guest was started %v after the boot, before a controller could answer", waited)
		}
		row.hosts[0].Up(port)
		if got := row.port(0, port); got.PortID != first.PortID || got.Conflict != "" {
			t.Errorf("it has port %q, conflict %q; it had %q", got.PortID, got.Conflict, first.PortID)
		}
	})
	f.inState("esx0", api.HostUp)

	t.Run("a controller answers, and says that the guest was started elsewhere", func(t *testing.T) {
		row := *f
		row.t = t
		row.startedElsewhere(vm, port, mac)
		row.asksFirst(vm, port, mac)
	})
	t.Run("a guest that runs is held back for nobody", func(t *testing.T) {
		row := *f
		row.t = t
		row.runsAtBoot(vm, port, mac)
	})
}

// bootsWithout boots the first host without the device of a VM, and returns when its agent was started at the earliest.
func (f *fleet) bootsWithout(vm int, port string) time.Time {
	f.t.Helper()
	f.hosts[0].Reboot()
	if _, ok := f.guests[port+"@0"]; ok {
		f.unplug(0, port)
		delete(f.guests, port+"@0")
	}
	booted := time.Now()
	f.hosts[0].Start("")
	f.guest(0, vm, port)
	return booted
}

// startedElsewhere has the first host lose its power with a VM, which is started on the second one with its port.
func (f *fleet) startedElsewhere(vm int, port, mac string) {
	f.t.Helper()
	f.hosts[0].Reboot()
	f.inState("esx0", api.HostDisconnected)
	f.mustStartVM(1, vm, port, "fixed", "--mac", mac)
	f.controller.Await("the port is claimed where the guest was started", func() bool {
		_, err := f.controller.SettlePort(f.t.Context(), api.SettlePort{VM: uuid(vm), Adapter: "net0", Host: "esx1",
			Force: true})
		return err == nil
	})
	f.conflict(1, port, "")
	f.hosts[0].Start("")
	f.inState("esx0", api.HostUp)
}

// asksFirst starts a VM on the first host, which boots, while the controller does not answer yet. Once it does, its
// answer counts, where it comes in time: the machine may be so busy that it does not, and the host boots again then.
func (f *fleet) asksFirst(vm int, port, mac string) {
	t := f.t
	t.Helper()
	for range 20 {
		f.inState("esx0", api.HostUp)
		thaw := f.controller.Freeze()
		booted := f.bootsWithout(vm, port)
		answered := make(chan error, 1)
		go func() { answered <- f.startVM(0, vm, port, "fixed", "--mac", mac) }()
		early := false
		select {
		case err := <-answered: // nobody can have asked
			early = true
			answered <- err
		case <-time.After(cluster.BootTime / 10):
		}
		thaw()
		err, after := <-answered, time.Since(booted)
		if early && after < cluster.BootTime {
			t.Fatalf("after %v, before a controller could answer, the guest is started: %v", after, err)
		}
		if err != nil {
			f.has("what it says of the guest", err.Error(), "esx1")
			return
		}
		// The hosts' reports may have changed by now what the answer said: the events have it.
		conflicts := f.hosts[0].must("events", "--no-follow", "--last", "-1", "--kind", "conflict")
		if strings.Contains(conflicts, "runs on host esx1\n") {
			f.conflict(0, port, "runs on host esx1 too")
			f.conflict(1, port, "runs on host esx0 too")
			return
		}
		if after < cluster.BootTime {
			t.Fatalf("after %v the guest has the port that it had, and no controller was waited for: %s", after,
				conflicts)
		}
		t.Logf("the controller's answer was late: %v after the boot", after)
	}
	t.Fatal("no boot in which a controller answered in time")
}

// runsAtBoot boots the first host while the device of a VM is there that also runs on the second one: no answer is
// waited for, both go on, and both are marked.
func (f *fleet) runsAtBoot(vm int, port, mac string) {
	f.t.Helper()
	f.hosts[1].must("port", "disconnect", port)
	f.mustStartVM(0, vm, port, "web", "--mac", mac)
	f.conflict(0, port, "") // that of before is over, and the next one is told
	f.hosts[0].Reboot()
	f.inState("esx0", api.HostDisconnected)
	f.mustStartVM(1, vm, port, "web", "--mac", mac)
	thaw := f.controller.Freeze()
	f.t.Cleanup(thaw)
	f.hosts[0].Start("")
	f.mustStartVM(0, vm, port, "web", "--mac", mac) // its hook
	before := f.hosts[0].Counter(port, "packetsInUnicast")
	f.sendsAs(0, port, fleetMAC(0, vm), 1)
	f.counted(0, port, before+1)
	thaw()
	f.inState("esx0", api.HostUp)
	f.bothRun(port, fleetMAC(0, vm))
}
