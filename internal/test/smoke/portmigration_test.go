package smoke

import (
	"testing"

	"heddle/internal/test/testkit/cable"
)

// A static port comes along when its VM moves to another host while it runs: the host that it goes to has the port's
// number before the guest arrives, the binding follows, and nobody takes the moment on both hosts for a conflict.
func TestS79_AStaticPortFollowsALiveMigration(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	for _, group := range []string{"fixed", "web"} {
		port := "p-" + group
		f.guest(1, 3, port)
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
		f.hosts[0].must("port", "disconnect", port)
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
}
