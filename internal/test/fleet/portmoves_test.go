package fleet

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
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
	testkit.Long(t, "kills agents before each step of a move; TestS79_AStaticPortFollowsALiveMigration has one "+
		"without")
	t.Parallel()
	f := newPortFleet(t)
	f.controller.Define(strings.Replace(portsText, "{name: web,", "{name: web, overrides: {security: true, "+
		"stormControl: true},", 1))
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

// Frames that a guest sends before and after its move, and the limit that its port has of its own.
const (
	framesBefore, framesAfter = 7, 8
	ownLimit                  = "1234"
)

// sendsAs has a VM send frames at a host.
func (f *fleet) sendsAs(n int, port string, mac [6]byte, frames int) {
	f.t.Helper()
	for i := range frames {
		f.guests[fmt.Sprintf("%s@%d", port, n)].Send(cable.Frame(fleetMAC(0, 9), mac, 0, fmt.Sprintf("%d of %d", i,
			frames)))
	}
}

// counted waits until a host shows that a port has received as many frames from its guest.
func (f *fleet) counted(n int, port string, want uint64) {
	f.t.Helper()
	var got uint64
	defer func() {
		if f.t.Failed() {
			f.t.Logf("host %d: port %s has received %d frames, want %d", n, port, got, want)
		}
	}()
	f.hosts[n].Await(fmt.Sprintf("host %d: port %s has received %d frames", n, port, want), func() bool {
		got = f.hosts[n].Counter(port, "packetsInUnicast")
		return got == want
	})
}

// hasItsOwn makes sure that a host's port has what the port had on the first host: a limit and a learned MAC.
func (f *fleet) hasItsOwn(n int, port string, inner [6]byte) {
	f.t.Helper()
	p := f.port(n, port)
	if got := effective(p, "stormControl.broadcast"); got != ownLimit+" at port "+port {
		f.t.Errorf("host %d: the limit of port %s is %s", n, port, got)
	}
	macs, err := f.hosts[n].MACs(f.t.Context())
	if err != nil || !slices.ContainsFunc(macs, func(m api.MAC) bool {
		return m.Port == port && m.MAC == plan.MAC(inner).String()
	}) {
		f.t.Errorf("host %d: port %s does not have the MAC that it had learned: %+v, %v", n, port, macs, err)
	}
}

// startsToMove starts a VM on the first host: its port has a limit of its own and a learned MAC, and has counted
// framesBefore frames. It returns the VM's MAC and the learned one.
func (f *fleet) startsToMove(vm int, port string) (mac, inner [6]byte) {
	f.t.Helper()
	for n := range f.hosts { // guests that send nothing by themselves: a frame says where the guest runs
		f.guests[fmt.Sprintf("%s@%d", port, n)] = f.hosts[n].QuietlyIn(fmt.Sprintf("%s-%d", port, n), port,
			fleetMAC(n, vm))
	}
	mac, inner = fleetMAC(0, vm), [6]byte{2, 1, 0, 0, 0, byte(vm)}
	f.mustStartVM(0, vm, port, "web", "--mac", plan.MAC(mac).String(), "--storm-broadcast", ownLimit, "--mac-learning",
		"--forged-transmits", "accept")
	f.sendsAs(0, port, mac, framesBefore-1)
	f.sendsAs(0, port, inner, 1)
	f.counted(0, port, framesBefore)
	return mac, inner
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
	mac, inner := f.startsToMove(vm, port)
	f.hosts[1].must("port", "connect", port, "--incoming", "--switch", "dvs", "--port-group", "web", "--device", port,
		"--mac", plan.MAC(mac).String(), "--vm-uuid", uuid(vm), "--adapter", "net0")
	f.moves(1, port, in("copied"), "a copy is there")
	f.blockTravels(port)
	step("copied")
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Fatal(err)
	}
	step("stopped")
	f.moves(1, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	if f.port(0, port).Wait == nil || f.port(1, port).Wait == nil {
		t.Error("a port speaks while its guest stands still")
	}
	f.sendsAs(1, port, mac, framesAfter)
	step("active")
	f.hosts[1].Await("the guest has arrived", func() bool { return f.port(1, port).Wait == nil })
	f.moves(1, port, in("active"), "active")
	f.moves(0, port, in("active"), "it knows that the guest runs elsewhere")
	f.counted(1, port, framesBefore+framesAfter)
	f.hasItsOwn(1, port, inner)
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
	f.locates(uuid(vm), target.Generation)
	for n := range f.hosts {
		if texts := f.conflictEvents(n, port); len(texts) > 0 {
			t.Errorf("host %d reports a conflict: %q", n, texts)
		}
	}
	f.hosts[1].must("port", "disconnect", port)
}

// blockTravels blocks the port of a guest that is about to move, and unblocks it: the host where it waits follows.
func (f *fleet) blockTravels(port string) {
	f.t.Helper()
	for _, verb := range []string{"block", "unblock"} {
		f.hosts[0].must("port", verb, port)
		if _, err := f.hosts[0].CopyMovingPort(f.t.Context(), api.PortMoveOf{Port: port}); err != nil {
			f.t.Fatal(err)
		}
		want := verb == "block"
		if p := f.port(1, port); (p.State == api.Blocked) != want {
			f.t.Errorf("after port %s at the source the port is %s at the target", verb, p.State)
		}
	}
}

// locates waits until the controller says that the adapter's port is on the second host, with its generation.
func (f *fleet) locates(vm string, generation uint64) {
	f.t.Helper()
	var got *api.LocatedPorts
	f.controller.Await("the controller knows where the port of VM "+vm+" is", func() (there bool) {
		var err error
		if got, err = f.controller.Fleet.LocatePorts(f.t.Context(), api.LocateQuery{VM: vm}); err != nil {
			f.t.Fatal(err)
		}
		return len(got.Ports) == 1 && got.Ports[0].Host == "esx1" && got.Ports[0].Generation == generation
	})
}
