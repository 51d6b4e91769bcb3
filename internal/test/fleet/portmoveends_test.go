package fleet

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// hoursApart sets the clock of the second host hours ahead, or right again.
func hoursApart(apart bool) func(*fleet) {
	return func(f *fleet) {
		now := time.Now()
		if apart {
			now = now.Add(5 * time.Hour)
		}
		if f.hosts[1].Clock == nil {
			f.restart(1, now)
			return
		}
		f.hosts[1].Clock.Set(f.t, now)
	}
}

// The move of a port ends otherwise than its guest's arrival: what its hosts show then, and what they do when the VM is
// started again.
func TestS100_S103_AMoveThatEndsInAnotherWay(t *testing.T) {
	testkit.Long(t, "moves a port once for each other end; TestS79_AStaticPortFollowsALiveMigration has the usual "+
		"one")
	t.Parallel()
	f := newPortFleet(t)
	for i, c := range []struct {
		name string
		ends func(f *fleet, vm int)
	}{
		{"the target lacks what the guest has or needs", (*fleet).refuses},
		{"the guest's QEMU is killed at the source half way", (*fleet).killsGuest},
		{"every message comes again", (*fleet).repeats},
		{"the guests of both hosts run", (*fleet).runsTwice},
		{"a lost host's port is claimed by force, and the host comes back with the guest running", (*fleet).losesHost},
		{"a host that boots asks first where a controller answers, and goes by its slice otherwise", (*fleet).boots},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := *f
			row.t = t
			c.ends(&row, 50+i)
		})
	}
}

// refuses has a port prepared where it can't be: the host says why, and has no port of it.
func (f *fleet) refuses(vm int) {
	f.t.Helper()
	port := fmt.Sprintf("m%d", vm)
	f.guests[port+"@0"] = f.hosts[0].QuietlyIn(port, port, fleetMAC(0, vm))
	incoming := func(group string, more ...string) error {
		return f.hosts[0].Heddle(append([]string{"port", "connect", port, "--incoming", "--switch", "dvs",
			"--port-group", group, "--device", port, "--vm-uuid", uuid(vm), "--adapter", "net0"}, more...)...)
	}
	refused := func(says string, err error) {
		f.t.Helper()
		if err == nil || !strings.Contains(err.Error(), says) {
			f.t.Errorf("%v, want %q", err, says)
		}
		s, err := f.hosts[0].State(f.t.Context())
		if err != nil || slices.ContainsFunc(s.Ports, func(p api.Port) bool { return p.Name == port }) {
			f.t.Errorf("the host has the port: %v", err)
		}
	}
	refused("switch dvs has no such port group; did you mean web?", incoming("wbe"))
	refused("switch dvs has no such port group", incoming("vault")) // labels keep it from this host
	refused("needs nfs, and ", incoming("web", "--needs", "nfs"))
	refused("does not let its ports set security", incoming("web", "--forged-transmits", "accept"))
	f.link(0, "eno2", false)
	f.hosts[0].Await("its uplink is down", func() bool {
		err := incoming("web", "--needs", "dvs/web")
		if err == nil {
			f.hosts[0].must("port", "disconnect", port)
		}
		return err != nil && strings.Contains(err.Error(), "needs dvs/web, and no uplink of switch dvs is up")
	})
	f.link(0, "eno2", true)
	f.hosts[0].Await("its uplink is up", func() bool { return incoming("web", "--needs", "dvs/web") == nil })
	f.hosts[0].must("port", "disconnect", port)
}

// killsGuest has the QEMU of a guest die at the source while the guest's memory is copied: no port is active, and the
// VM can be started anew on any host.
func (f *fleet) killsGuest(vm int) {
	f.t.Helper()
	port, mac := f.startsMoving(vm, func(string) {})
	f.moves(1, port, in("copied"), "a copy is there")
	f.unplug(0, port)
	f.moves(1, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	f.moves(0, port, in("released"), "the port is gone with its device")
	f.speaks(-1, port, 1)
	f.hosts[1].must("port", "disconnect", port)
	f.mustStartVM(1, vm, port, "web", "--mac", plan.MAC(mac).String())
	f.sendsAs(1, port, mac, framesAfter)
	f.counted(1, port, framesAfter)
	f.speaks(1, port, 1)
	f.controller.Await("the controller has the port on the host where the VM was started", func() bool {
		got, err := f.controller.Fleet.LocatePorts(f.t.Context(), api.LocateQuery{VM: uuid(vm)})
		return err == nil && len(got.Ports) == 1 && got.Ports[0].Host == "esx1"
	})
	f.hosts[1].must("port", "disconnect", port)
}

// runsTwice has a guest run at the target while it runs at the source: both ports speak, both are marked, and what is
// left when one guest ends is no conflict.
func (f *fleet) runsTwice(vm int) {
	f.t.Helper()
	port, mac := f.startsMoving(vm, func(string) {})
	f.moves(1, port, in("copied"), "a copy is there")
	f.sendsAs(1, port, mac, framesAfter)
	f.hosts[1].Await("the second guest runs", func() bool { return f.port(1, port).Wait == nil })
	f.bothRun(port, mac)
	f.hosts[0].must("port", "disconnect", port)
	f.conflict(1, port, "")
	f.hosts[1].must("port", "disconnect", port)
}

// bothRun makes sure that a port is in conflict on both hosts, and that none of the two is silent.
func (f *fleet) bothRun(port string, mac [6]byte) {
	f.t.Helper()
	for n, other := range []string{"esx1", "esx0"} {
		f.conflict(n, port, "runs on host "+other)
		f.told(n, other)
		before := f.hosts[n].Counter(port, "packetsInUnicast")
		f.sendsAs(n, port, mac, 1)
		f.counted(n, port, before+1)
		if p := f.port(n, port); p.Wait != nil || p.State != api.Up {
			f.t.Errorf("host %d: port %s is %s, and waits: %+v", n, port, p.State, p.Wait)
		}
	}
}

// losesHost loses a host to its controllers; the VM of a static port of it is started on another host. The port is not
// claimed within the lease without force. The first host comes back with its guest running.
func (f *fleet) losesHost(vm int) {
	t := f.t
	t.Helper()
	port := fmt.Sprintf("m%d", vm)
	mac := fleetMAC(0, vm)
	first := f.mustStartVM(0, vm, port, "fixed", "--mac", plan.MAC(mac).String())
	f.static("fixed", port+" on esx0 up", "free")
	f.hosts[0].End(syscall.SIGKILL) // its guests go on
	f.inState("esx0", api.HostDisconnected)
	f.mustStartVM(1, vm, port, "fixed", "--mac", plan.MAC(mac).String())
	q := api.SettlePort{VM: uuid(vm), Adapter: "net0", Host: "esx1"}
	f.controller.Await("the claim is refused within the lease, without force", func() bool {
		_, err := f.controller.SettlePort(t.Context(), q)
		if err == nil {
			t.Fatal("the port of a lost host was claimed without force")
		}
		return strings.Contains(err.Error(), "is held by host esx0") && strings.Contains(err.Error(), "--force")
	})
	q.Force = true
	if _, err := f.controller.SettlePort(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	f.conflict(1, port, "")
	if p := f.port(1, port); p.PortID != first.PortID {
		t.Errorf("it has port %q, which was %q", p.PortID, first.PortID)
	}
	got, err := f.controller.Fleet.Audit(t.Context(), api.AuditQuery{Call: "SettleStaticPort", Result: api.AuditDone})
	if err != nil || !slices.ContainsFunc(got.Entries, func(e api.AuditEntry) bool {
		return strings.Contains(fmt.Sprint(e.Objects), uuid(vm))
	}) {
		t.Errorf("the audit log does not have the claim: %+v, %v", got, err)
	}
	f.hosts[0].Start("")
	f.inState("esx0", api.HostUp)
	f.bothRun(port, mac)
}

// boots has a host lose its power with a guest. Where the guest was started on another host meanwhile, the first one
// asks before it starts the guest, and says who has the port. Where no controller answers, the guest gets the port that
// it had.
func (f *fleet) boots(vm int) {
	t := f.t
	t.Helper()
	port := fmt.Sprintf("m%d", vm)
	first := f.mustStartVM(0, vm, port, "fixed")
	off := func() {
		t.Helper()
		f.hosts[0].Reboot()
		f.unplug(0, port)
		delete(f.guests, port+"@0")
	}
	off()
	f.inState("esx0", api.HostDisconnected)
	f.mustStartVM(1, vm, port, "fixed")
	f.controller.Await("the port is claimed where the guest was started", func() bool {
		_, err := f.controller.SettlePort(t.Context(), api.SettlePort{VM: uuid(vm), Adapter: "net0", Host: "esx1",
			Force: true})
		return err == nil
	})
	f.conflict(1, port, "")
	f.hosts[0].Start("")
	f.inState("esx0", api.HostUp)
	f.conflict(0, port, "") // it has no device: the guest does not run here
	f.mustStartVM(0, vm, port, "fixed")
	f.conflict(0, port, "runs on host esx1")
	off()
	f.inState("esx0", api.HostDisconnected)
	f.hosts[0].Start("")
	f.inState("esx0", api.HostUp)
	f.hosts[1].must("port", "disconnect", port)
	f.conflict(0, port, "")
	if got := f.mustStartVM(0, vm, port, "fixed"); got.PortID != first.PortID || got.Conflict != "" {
		t.Errorf("with a controller that answers it has port %q, conflict %q; it had %q", got.PortID, got.Conflict,
			first.PortID)
	}
	f.controller.Await("the controllers have it there", func() bool {
		list, err := f.controller.StaticPorts(t.Context(), api.StaticPortQuery{PortGroup: "fixed"})
		return err == nil && slices.ContainsFunc(list.Ports, func(p api.StaticPort) bool {
			return p.VM == uuid(vm) && p.Port == first.PortID && p.Host == "esx0"
		})
	})

	f.controller.End(syscall.SIGKILL)
	off()
	f.hosts[0].Start("")
	if got := f.mustStartVM(0, vm, port, "fixed"); got.PortID != first.PortID || got.Conflict != "" {
		t.Errorf("without a controller it has port %q, conflict %q; it had %q", got.PortID, got.Conflict, first.PortID)
	}
	f.controller.Start()
	f.inState("esx0", api.HostUp)
	f.hosts[0].must("port", "disconnect", port, "--release")
}
