package fleet

import (
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit/cable"
)

// A static port comes along when its VM moves to another host while it runs: the host that it goes to has the port's
// number before the guest arrives, the binding follows, and nobody takes the moment on both hosts for a conflict.
func TestS79_AStaticPortFollowsALiveMigration(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	for _, group := range []string{"fixed", "web"} {
		port := "p-" + group
		// A guest that sends nothing by itself: a frame says that it has arrived.
		f.guests[port+"@1"] = f.hosts[1].QuietlyIn(port, port, fleetMAC(1, 3))
		first := f.mustStartVM(0, 3, port, group)
		f.hosts[1].must("port", "connect", port, "--incoming", "--switch", "dvs", "--port-group", group, "--device",
			port, "--vm-uuid", uuid(3), "--adapter", "net0")
		f.hosts[1].Await("the port waits for its guest", func() bool { return f.port(1, port).Wait != nil })
		if p := f.port(1, port); p.PortID != first.PortID || p.Conflict != "" {
			t.Errorf("%s: before the guest arrives its port is %q, conflict %q; it was %q", group, p.PortID, p.Conflict,
				first.PortID)
		}
		arrived := cable.Frame(fleetMAC(0, 9), fleetMAC(1, 3), 0, "the guest runs here")
		f.guests[port+"@1"].Send(arrived)
		f.hosts[1].Await("the guest has arrived", func() bool { return f.port(1, port).Wait == nil })
		// At once, as QEMU ends there when the guest has arrived: a command's start takes longer on a busy machine than
		// the hosts need to say both that the guest runs there.
		if err := f.hosts[0].Disconnect(t.Context(), api.Disconnect{Port: port}); err != nil {
			t.Fatal(err)
		}
		if group == "fixed" {
			f.static("fixed", port+" on esx1 up", "free")
		}
		if p := f.port(1, port); p.PortID != first.PortID || p.Conflict != "" {
			t.Errorf("%s: after the migration the port is %q, conflict %q; it was %q", group, p.PortID, p.Conflict,
				first.PortID)
		}
		for n := range f.hosts {
			if texts := f.conflictEvents(n, port); len(texts) > 0 {
				t.Errorf("%s: host %d reports a conflict: %q", group, n, texts)
			}
		}
		f.hosts[1].must("port", "disconnect", port, "--release")
	}
	f.reassigns(4)
}

// reassigns has a controller put the port of a VM into other port groups of its host: it is bound there, is free in the
// one that it left, and stays where it is when there is no place.
func (f *fleet) reassigns(vm int) {
	t, port := f.t, "p-moves"
	t.Helper()
	f.mustStartVM(1, vm, port, "vault")
	f.static("vault", port+" on esx1 up", "free")
	for _, group := range []string{"grows", "web", "vault"} {
		out, err := f.controller.Fleet.Reassign(t.Context(), api.ReassignPort{Port: uuid(vm) + "/net0",
			PortGroup: group})
		if err != nil || out.Host != "esx1" || len(out.Warnings) > 0 {
			t.Fatalf("to %s: %+v, %v", group, out, err)
		}
		p := f.port(1, port)
		if p.PortGroup != group || p.State != api.Up || p.Conflict != "" || (p.PortID == "") != (group == "web") {
			t.Errorf("to %s: it is in %s, %s, number %q, conflict %q", group, p.PortGroup, p.State, p.PortID,
				p.Conflict)
		}
		if group != "vault" {
			f.static("vault", "free", "free")
		}
	}
	f.static("vault", port+" on esx1 up", "free")
	f.mustStartVM(1, vm+1, "p-2", "vault")
	f.mustStartVM(1, vm+2, "p-3", "web")
	f.controller.Await("the controller knows the port", func() bool {
		got, err := f.controller.Fleet.LocatePorts(t.Context(), api.LocateQuery{VM: uuid(vm + 2)})
		return err == nil && len(got.Ports) == 1
	})
	_, err := f.controller.Fleet.Reassign(t.Context(), api.ReassignPort{Port: "p-3", PortGroup: "vault"})
	if err == nil || !strings.Contains(err.Error(), "stays where it is") {
		t.Errorf("without a free port: %v", err)
	}
	if p := f.port(1, "p-3"); p.PortGroup != "web" || p.State != api.Up {
		t.Errorf("it is in %s, %s", p.PortGroup, p.State)
	}
}
