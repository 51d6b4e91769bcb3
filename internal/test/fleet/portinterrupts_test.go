package fleet

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// A command that moves a port, or waits for ports to move, is interrupted: with Ctrl-C while it shows steps, and at any
// time before. Nothing is half done, the command says how it stands, and works when it is repeated.
func TestS100_APortMovesWholeOrNotAtAllWhenACommandIsInterrupted(t *testing.T) {
	testkit.Long(t, "interrupts a move at any time; TestS79_AStaticPortFollowsALiveMigration has one that is not")
	t.Parallel()
	f := newPortFleet(t)
	f.controller.Define(strings.Replace(strings.Replace(portsText, "templates:", "- {name: inner, portGroups: [{name: "+
		"web, vlan: {access: 10}}]}\ntemplates:", 1), "device: eno2}]}]", "device: eno2}]}, {name: inner}]", 1))
	for i, c := range []struct {
		name string
		do   func(f *fleet, vm int)
	}{
		{"port migrate while it shows steps", (*fleet).interruptsMigrate},
		{"port migrate at any time", (*fleet).interruptsMigrateAnywhere},
		{"port move --switch at any time", (*fleet).interruptsMove},
		{"host drain --wait", (*fleet).interruptsDrain},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := *f
			row.t = t
			c.do(&row, 70+i)
		})
	}
}

// interrupted sends Ctrl-C to a command, waits for its end, and gives its exit status.
func (f *fleet) interrupted(cmd *exec.Cmd) int {
	f.t.Helper()
	_ = cmd.Process.Signal(syscall.SIGINT) // it may have ended
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// startsQuietly has a VM run on the first host, with a device for it on both.
func (f *fleet) startsQuietly(vm int, group string) (port string, mac [6]byte) {
	f.t.Helper()
	port, mac = fmt.Sprintf("m%d", vm), fleetMAC(0, vm)
	for n := range f.hosts {
		f.guests[fmt.Sprintf("%s@%d", port, n)] = f.hosts[n].QuietlyIn(fmt.Sprintf("%s-%d", port, n), port,
			fleetMAC(n, vm))
	}
	f.mustStartVM(0, vm, port, group, "--mac", plan.MAC(mac).String())
	f.sendsAs(0, port, mac, framesBefore)
	f.counted(0, port, framesBefore)
	f.controller.Await("the controller knows the port", func() bool {
		got, err := f.controller.Fleet.LocatePorts(f.t.Context(), api.LocateQuery{VM: uuid(vm)})
		return err == nil && len(got.Ports) == 1
	})
	return port, mac
}

// interruptsMigrate interrupts a command that follows a move, which goes on; the same command finds it again, and
// another one takes it back.
func (f *fleet) interruptsMigrate(vm int) {
	t := f.t
	t.Helper()
	port, mac := f.startsQuietly(vm, "web")
	var first api.PortMove
	for turn := range 3 {
		cmd, out, errs := f.watches("port", "migrate", port, "--to", "esx1")
		f.controller.Await("the command shows a copy", func() bool { return strings.Contains(out.String(), "copied") })
		status := f.interrupted(cmd)
		if want := "the move goes on. To take it back: heddle port migrate " + port + " --cancel"; status != 1 ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("turn %d: status %d, it says %q", turn, status, errs)
		}
		m, _ := f.moveOf(1, port)
		if turn == 0 {
			first = m
		}
		if m.Phase != "copied" || m.Move != first.Move {
			t.Errorf("turn %d: the move is %+v, the first one %+v", turn, m, first)
		}
		f.speaks(0, port, 0, 1)
	}
	out, errs, status := f.controller.Heddle("port", "migrate", port, "--cancel")
	if status != 0 || !strings.Contains(out, "is cancelled") {
		t.Fatalf("--cancel: status %d\n%s%s", status, out, errs)
	}
	f.moves(0, port, in("cancelled"), "it knows that the move was taken back")
	f.hasNoPort(1, port)
	f.finishes(port, mac)
}

// interruptsMigrateAnywhere interrupts the command from its beginning on, also while the target can't answer.
func (f *fleet) interruptsMigrateAnywhere(vm int) {
	f.t.Helper()
	port, mac := f.startsQuietly(vm, "web")
	f.anywhere(1, func() {
		f.speaks(0, port, 0)
		if f.hasPortNamed(1, port) {
			f.speaks(0, port, 1)
		}
	}, "port", "migrate", port, "--to", "esx1")
	f.finishes(port, mac)
}

// anywhere interrupts a command sooner and later, and in the end while a host stands still. Each time whole says
// whether all is as it was, or as it shall be.
func (f *fleet) anywhere(host int, whole func(), args ...string) {
	f.t.Helper()
	interrupts := func(after time.Duration) {
		f.t.Helper()
		cmd, _, errs := f.watches(args...)
		time.Sleep(after) // whatever it has done by then
		if status := f.interrupted(cmd); status != 0 && !strings.Contains(errs.String(), "heddle: ") && status != -1 {
			f.t.Errorf("after %v: status %d, it says %q", after, status, errs)
		} else {
			f.t.Logf("after %v: status %d, it says %q", after, status, errs)
		}
	}
	for _, after := range []time.Duration{0, 5, 10, 20, 40, 80, 160, 320} {
		interrupts(after * time.Millisecond)
		whole()
	}
	f.hosts[host].Signal(syscall.SIGSTOP)
	interrupts(time.Second)
	f.hosts[host].Signal(syscall.SIGCONT)
	whole()
}

// finishes moves the port by the same command, and sees its guest arrive.
func (f *fleet) finishes(port string, mac [6]byte) {
	t := f.t
	t.Helper()
	cmd, out, errs := f.watches("port", "migrate", port, "--to", "esx1")
	f.controller.Await("the command shows a copy", func() bool { return strings.Contains(out.String(), "copied") })
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Fatal(err)
	}
	f.moves(1, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	f.sendsAs(1, port, mac, framesAfter)
	f.moves(0, port, in("active"), "it knows that the guest runs elsewhere")
	if err := f.hosts[0].ReleaseMovedPort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "released") {
		t.Errorf("the command: %v\n%s%s", err, out, errs)
	}
	f.speaks(1, port, 1)
	f.counted(1, port, framesBefore+framesAfter)
	f.hosts[1].must("port", "disconnect", port)
}

func (f *fleet) hasPortNamed(n int, port string) bool {
	f.t.Helper()
	s, err := f.hosts[n].State(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, p := range s.Ports {
		if p.Name == port {
			return true
		}
	}
	return false
}

func (f *fleet) hasNoPort(n int, port string) {
	f.t.Helper()
	if f.hasPortNamed(n, port) {
		f.t.Errorf("host %d has port %s still", n, port)
	}
}

// interruptsMove interrupts the command that puts a port on another switch: it is on one of the two, and speaks.
func (f *fleet) interruptsMove(vm int) {
	t := f.t
	t.Helper()
	port, mac := f.startsQuietly(vm, "web")
	sent := uint64(framesBefore)
	whole := func() {
		t.Helper()
		p := f.port(0, port)
		if p.Switch != "dvs" && p.Switch != "inner" || p.PortGroup != "web" || p.State != api.Up {
			t.Errorf("the port is on switch %s in %s, %s", p.Switch, p.PortGroup, p.State)
		}
		f.sendsAs(0, port, mac, 1)
		sent++
		f.counted(0, port, sent)
	}
	for _, to := range []string{"inner", "dvs"} {
		f.anywhere(0, whole, "port", "move", port, "--switch", to)
		out, errs, status := f.controller.Heddle("port", "move", port, "--switch", to)
		if status != 0 || f.port(0, port).Switch != to {
			t.Errorf("to %s: status %d\n%s%s", to, status, out, errs)
		}
		whole()
	}
	f.hosts[0].must("port", "disconnect", port)
}

// interruptsDrain interrupts the command that waits until a host is empty: it shows what is left.
func (f *fleet) interruptsDrain(vm int) {
	t := f.t
	t.Helper()
	port, _ := f.startsQuietly(vm, "web")
	for range 2 {
		cmd, out, errs := f.watches("host", "drain", "esx0", "--wait")
		f.controller.Await("it waits", func() bool {
			return strings.Contains(errs.String(), "in the way on host esx0")
		})
		if status := f.interrupted(cmd); status != 1 || !strings.Contains(out.String(), port) {
			t.Errorf("status %d, it shows\n%s%s", status, out, errs)
		}
		f.speaks(0, port, 0)
	}
	f.hosts[0].must("port", "disconnect", port)
}
