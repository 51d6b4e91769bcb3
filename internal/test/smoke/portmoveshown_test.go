package smoke

import (
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan"
)

// While a port moves between two hosts, both have one of its name. Who asks a controller for it is shown the one where
// the guest runs; a trace says who is active and why, on either host and where nobody is.
func TestS100_APortMovesAndIsExplained(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	f.mustStartVM(1, 81, "peer", "web", "--mac", plan.MAC(fleetMAC(1, 81)).String())
	port, mac := f.startsMoving(80, func(string) {})
	f.moves(1, port, in("copied"), "a copy is there")
	f.explains(port, 0, "yes: esx1:peer reaches esx0:"+port, "port "+port+" moves between hosts: its guest runs on "+
		"host esx0; on host esx1 it is silent: its guest is to arrive by a migration")
	f.explains("esx1:"+port, 1, "is silent since", "its guest is to arrive by a migration",
		"it comes from host esx0 (receiver-waiting)")
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Fatal(err)
	}
	f.moves(1, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	f.explains(port, 1, "port "+port+" moves between hosts and is active on none: on host esx0 its guest has left by "+
		"a migration: a manager has silenced", "it goes to host esx1, which has not said yet that it runs there")
	f.sendsAs(1, port, mac, framesAfter)
	f.moves(0, port, in("active"), "it knows that the guest runs elsewhere")
	f.explains(port, 1, "port "+port+" moves between hosts: its guest runs on host esx1; on host esx0 it is silent")
	f.explains("esx0:"+port, 1, "it runs on host esx1 (guest-elsewhere)")
	out, errs, status := f.controller.Heddle("port", "show", port)
	if status != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "host: esx1 ") {
		t.Errorf("port show: status %d\n%s%s", status, out, errs)
	}
}

// explains makes sure that a trace from the peer to a port says all that.
func (f *fleet) explains(to string, status int, says ...string) {
	f.t.Helper()
	out, errs, got := f.controller.Heddle("trace", "--from", "peer", "--to", to)
	all := strings.Join(strings.Fields(out+errs), " ")
	for _, part := range says {
		if got != status || !strings.Contains(all, part) {
			f.t.Errorf("trace to %s: status %d, want %d and %q:\n%s%s", to, got, status, part, out, errs)
		}
	}
}
