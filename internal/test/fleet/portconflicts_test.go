package fleet

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// conflict awaits that a port is in conflict for that reason, "" for none.
func (f *fleet) conflict(n int, name, why string) {
	f.t.Helper()
	f.controller.Await(fmt.Sprintf("port %s of host %d is in conflict: %q", name, n, why), func() bool {
		got := f.port(n, name).Conflict
		return got == why || why != "" && strings.Contains(got, why)
	})
}

// told makes sure that a host's events say that a port is in conflict.
func (f *fleet) told(n int, text string) {
	f.t.Helper()
	out := f.hosts[n].must("events", "--no-follow", "--last", "-1", "--kind", "conflict")
	if !strings.Contains(out, text) {
		f.t.Errorf("host %d has no event with %q:\n%s", n, text, out)
	}
}

// Without a controller every guest starts: with ephemeral ports as ever, with static ones on the port that was bound
// here last, else on a conflict port. When a controller is back, what nobody else has is bound, and the rest stays
// marked until an operator settles it. No guest is cut off.
func TestS78_EveryGuestStartsWithoutAController(t *testing.T) {
	testkit.Long(t, "TestS78_AConflictPortThatNobodyContestsIsBound has a conflict port")
	t.Parallel()
	f := newPortFleet(t)
	first := f.mustStartVM(0, 3, "p-a", "fixed")
	f.hosts[0].must("port", "disconnect", "p-a")
	f.controller.End(syscall.SIGKILL)

	if p := f.mustStartVM(0, 3, "p-a", "fixed"); p.PortID != first.PortID || p.Conflict != "" {
		t.Errorf("where its port was bound last the VM has port %q and conflict %q", p.PortID, p.Conflict)
	}
	if p := f.mustStartVM(0, 4, "p-web", "web"); p.PortID != "" || p.Conflict != "" {
		t.Errorf("an ephemeral port is %q, conflict %q", p.PortID, p.Conflict)
	}
	for n, vm := range map[int]int{0: 6, 1: 5} {
		name := fmt.Sprintf("p-%d", vm)
		if p := f.mustStartVM(n, vm, name, "fixed", "--port-id", first.PortID); p.PortID != first.PortID ||
			!strings.Contains(p.Conflict, "while no controller answered") {
			t.Errorf("port %s where it was never bound: port %q, conflict %q", name, p.PortID, p.Conflict)
		}
	}
	f.told(1, "p-5 is in conflict")
	f.reaches("p-a@0", "p-5@1", fleetMAC(0, 3), fleetMAC(1, 5))
	carried := f.stream("p-a@0", "p-5@1", fleetMAC(0, 3), fleetMAC(1, 5))
	kept := f.stream("p-6@0", "p-a@0", fleetMAC(0, 6), fleetMAC(0, 3))

	f.hosts[1].End(syscall.SIGKILL)
	f.hosts[1].Start("")
	f.hosts[1].Up("p-5")
	f.controller.Start()
	for n, name := range map[int]string{0: "p-6", 1: "p-5"} {
		f.conflict(n, name, "port "+first.PortID+" is taken by port group dvs/fixed (VM "+uuid(3))
	}
	f.static("fixed", "p-a on esx0 up", "free", "p-5 on esx1 up in conflict", "p-6 on esx0 up in conflict")
	if _, err := f.controller.SettlePort(t.Context(), api.SettlePort{VM: uuid(5), Adapter: "net0",
		Host: "esx1"}); err != nil {
		t.Fatal(err)
	}
	f.conflict(1, "p-5", "")
	f.told(1, "p-5 is in conflict no more")
	if p := f.port(1, "p-5"); p.PortID == "" || p.PortID == first.PortID {
		t.Errorf("settled, the VM has port %q", p.PortID)
	}
	_, err := f.controller.SettlePort(t.Context(), api.SettlePort{VM: uuid(6), Adapter: "net0", Host: "esx0"})
	if err == nil || !strings.Contains(err.Error(), "has no free port") {
		t.Errorf("a third VM in a port group of two ports: %v", err)
	}
	f.controller.Define(strings.Replace(portsText, "number: 2", "number: 3", 1))
	if _, err := f.controller.SettlePort(t.Context(), api.SettlePort{VM: uuid(6), Adapter: "net0",
		Host: "esx0"}); err != nil {
		t.Fatal(err)
	}
	f.conflict(0, "p-6", "")
	f.static("fixed", "p-5 on esx1 up", "p-6 on esx0 up", "p-a on esx0 up")
	f.whole("to a port that was in conflict", carried)
	f.whole("from a port that was in conflict", kept)
}

// What nobody else has is bound by itself when a controller is back.
func TestS78_AConflictPortThatNobodyContestsIsBound(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	f.controller.End(syscall.SIGKILL)
	if p := f.mustStartVM(1, 3, "p-a", "fixed"); p.Conflict == "" {
		t.Error("a port that nobody has bound is no conflict port")
	}
	f.controller.Start()
	f.conflict(1, "p-a", "")
	f.static("fixed", "p-a on esx1 up", "free")
	if p := f.port(1, "p-a"); p.PortID == "" {
		t.Error("it has no port")
	}
}

// One VM on two hosts: both go on and both are marked, whether a controller was there or not, and with ephemeral ports
// too. The port follows the VM when one of the two has stopped. Equal names on two hosts are two ports.
func TestS78_OneVMOnTwoHostsIsMarkedOnBoth(t *testing.T) {
	testkit.Long(t, "TestS78_AConflictPortThatNobodyContestsIsBound has a conflict port")
	t.Parallel()
	for _, group := range []string{"fixed", "web"} {
		t.Run(group, func(t *testing.T) {
			f := newPortFleet(t)
			first := f.mustStartVM(0, 3, "p-a", group)
			f.guest(1, 4, "p-a") // another adapter: the guests can tell each other apart
			second := f.mustStartVM(1, 3, "p-a", group)
			f.mustStartVM(1, 5, "p-b", group)
			for n, other := range []string{"esx1", "esx0"} {
				f.conflict(n, "p-a", "runs on host "+other)
				f.told(n, other)
			}
			f.conflict(1, "p-b", "")
			f.reaches("p-a@0", "p-b@1", fleetMAC(0, 3), fleetMAC(1, 5))
			f.reaches("p-a@1", "p-b@1", fleetMAC(1, 4), fleetMAC(1, 5))
			if second.PortID != first.PortID {
				t.Errorf("the VM has port %q there, %q here", second.PortID, first.PortID)
			}

			f.hosts[0].must("port", "disconnect", "p-a")
			f.conflict(1, "p-a", "")
			if group == "fixed" {
				f.static("fixed", "p-a on esx1 up", "p-b on esx1 up")
			}
		})
	}
}

// A host binds port groups that its labels allow, and no other (S104).
func TestS104_AHostBindsWhatItsLabelsAllow(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	f.mustStartVM(1, 3, "p-a", "vault")
	if err := f.startVM(0, 4, "p-b", "vault"); err == nil || !strings.Contains(err.Error(), "no such port group") {
		t.Errorf("a port group that the host may not serve: %v", err)
	}
	text := strings.Replace(portsText, "labels: {zone: vault}", "labels: {zone: other}", 1)
	out, err := f.controller.Defines(api.Define{File: "fleet.yaml", Content: text})
	if err == nil || !strings.Contains(err.Error(), "host esx1 would not serve port group dvs/vault any more") {
		t.Errorf("labels that a host in use lacks: %+v, %v", out, err)
	}
}

// A port without a device has no guest, as on a host that was switched off while its VM runs elsewhere now: the VM's
// port follows it there without a conflict. When the guest was started here again, it counts.
func TestS78_APortWithoutADeviceIsInNobodysWay(t *testing.T) {
	testkit.Long(t, "TestS78_AConflictPortThatNobodyContestsIsBound has a conflict port")
	t.Parallel()
	f := newPortFleet(t)
	first := f.mustStartVM(0, 3, "p-a", "fixed")
	f.unplug(0, "p-a")
	f.hosts[0].Await("the port has no device", func() bool { return f.port(0, "p-a").State == api.Pending })
	if p := f.mustStartVM(1, 3, "p-a", "fixed"); p.PortID != first.PortID || p.Conflict != "" {
		t.Errorf("elsewhere the VM has port %q and conflict %q, before %q", p.PortID, p.Conflict, first.PortID)
	}
	f.conflict(0, "p-a", "")
	f.static("fixed", "p-a on esx1 up", "free")

	f.guest(0, 4, "p-a")
	f.mustStartVM(0, 3, "p-a", "fixed")
	f.conflict(0, "p-a", "runs on host esx1")
	f.conflict(1, "p-a", "runs on host esx0")
	f.unplug(1, "p-a")
	f.conflict(0, "p-a", "")
	f.static("fixed", "p-a on esx0 up", "free")
	f.conflict(1, "p-a", "")
}

// unplug takes a port's device away, as the end of its guest does.
func (f *fleet) unplug(n int, device string) {
	f.t.Helper()
	inside(f.t, f.hosts[n].NS, func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		return netlink.LinkDel(l)
	})
}
