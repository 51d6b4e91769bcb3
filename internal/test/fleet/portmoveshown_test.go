package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// While a port moves between two hosts, both have one of its name. Who asks a controller for it is shown the one where
// the guest runs; a trace says who is active and why, on either host and where nobody is.
func TestS100_APortMovesAndIsExplained(t *testing.T) {
	testkit.Long(t, "moves a port and traces it at each step; TestS79_AStaticPortFollowsALiveMigration has a port "+
		"that moves")
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
	f.comesToSay(0, []string{"host: esx1 "}, "port", "show", port)
}

// explains waits until a trace from the peer to a port says all that.
func (f *fleet) explains(to string, status int, parts ...string) {
	f.t.Helper()
	f.comesToSay(status, parts, "trace", "--from", "peer", "--to", to)
}

// comesToSay waits until a command says all that: what a host knows is a moment later known to the controller.
func (f *fleet) comesToSay(status int, parts []string, args ...string) {
	f.t.Helper()
	for end := time.Now().Add(realhost.Patience); ; time.Sleep(realhost.Poll) {
		out, errs, got := f.controller.Heddle(args...)
		all := strings.Join(strings.Fields(out+errs), " ")
		lacks := slices.DeleteFunc(slices.Clone(parts), func(p string) bool { return strings.Contains(all, p) })
		if got == status && len(lacks) == 0 {
			return
		}
		if time.Now().After(end) {
			f.t.Errorf("%v: status %d, want %d and %q:\n%s%s", args, got, status, lacks, out, errs)
			return
		}
	}
}
