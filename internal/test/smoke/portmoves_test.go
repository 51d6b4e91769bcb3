package smoke

import (
	"fmt"
	"slices"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit/cable"
)

// moveOf is the newest move of a port on a host; false for none.
func (f *fleet) moveOf(n int, port string) (api.PortMove, bool) {
	f.t.Helper()
	all, err := f.hosts[n].PortMoves(f.t.Context(), api.PortMoveOf{Port: port})
	if err != nil || len(all) == 0 {
		return api.PortMove{}, false // the agent may be starting
	}
	return all[len(all)-1], true
}

// moves waits until a port's newest move has come to one of the phases on a host.
func (f *fleet) moves(n int, port string, holds func(api.PortMove) bool, what string) {
	f.t.Helper()
	f.hosts[n].Await(fmt.Sprintf("host %d, port %s: %s", n, port, what), func() bool {
		m, ok := f.moveOf(n, port)
		return ok && holds(m)
	})
}

func in(phases ...api.MovePhase) func(api.PortMove) bool {
	return func(m api.PortMove) bool { return slices.Contains(phases, m.Phase) }
}

// killed kills the agent of a host without a last word, and starts another one.
func (f *fleet) killed(n int) {
	f.t.Helper()
	f.hosts[n].End(syscall.SIGKILL)
	f.hosts[n].Start(fmt.Sprintf(ownConfig, n, n))
}

// A port moves with its guest between two hosts that a controller names to each other: its guest's frames decide who
// speaks, the generation says where it is, and either agent may be killed before any step.
func TestS100_APortMovesBetweenTwoHosts(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	for i, c := range []struct {
		name string
		kill int // the host whose agent is killed, -1 for none
		at   string
	}{
		{"nobody is killed", -1, ""},
		{"the source's agent is killed before the guest stops", 0, "copied"},
		{"the source's agent is killed after the guest has stopped", 0, "stopped"},
		{"the target's agent is killed before the guest arrives", 1, "stopped"},
		{"the target's agent is killed after the guest has arrived", 1, "active"},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := *f
			row.t = t
			row.movePort(10+i, c.kill, c.at)
		})
	}
}

// movePort moves the port of a VM from the first host to the second. The agent of the host kill is killed at a step.
func (f *fleet) movePort(vm, kill int, at string) {
	t, port := f.t, fmt.Sprintf("m%d", vm)
	t.Helper()
	step := func(name string) {
		if kill >= 0 && name == at {
			f.killed(kill)
		}
	}
	for n := range f.hosts { // guests that send nothing by themselves: a frame says where the guest runs
		f.guests[fmt.Sprintf("%s@%d", port, n)] = f.hosts[n].quietlyIn(fmt.Sprintf("%s-%d", port, n), port,
			fleetMAC(n, vm))
	}
	f.mustStartVM(0, vm, port, "web")
	f.hosts[1].must("port", "connect", port, "--incoming", "--switch", "dvs", "--port-group", "web", "--device", port,
		"--vm-uuid", uuid(vm), "--adapter", "net0")
	f.moves(1, port, in("copied"), "a copy is there")
	step("copied")
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Fatal(err)
	}
	step("stopped")
	f.moves(1, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	if f.port(0, port).Wait == nil || f.port(1, port).Wait == nil {
		t.Error("a port speaks while its guest stands still")
	}
	f.guests[port+"@1"].Send(cable.Frame(fleetMAC(0, 9), fleetMAC(1, vm), 0, "the guest runs here"))
	step("active")
	f.hosts[1].Await("the guest has arrived", func() bool { return f.port(1, port).Wait == nil })
	f.moves(1, port, in("active"), "active")
	f.moves(0, port, in("active"), "it knows that the guest runs elsewhere")
	for range 2 { // a double release
		if err := f.hosts[0].ReleaseMovedPort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
			t.Error(err)
		}
	}
	source, _ := f.moveOf(0, port)
	target, _ := f.moveOf(1, port)
	if source.Phase != "released" || !source.Last || source.Peer != "esx1" || target.Peer != "esx0" ||
		source.Move != target.Move || target.Generation <= source.Generation {
		t.Errorf("in the end:\n%+v\n%+v", source, target)
	}
	for n := range f.hosts {
		if texts := f.conflictEvents(n, port); len(texts) > 0 {
			t.Errorf("host %d reports a conflict: %q", n, texts)
		}
	}
	f.hosts[1].must("port", "disconnect", port)
}
