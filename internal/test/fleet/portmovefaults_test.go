package fleet

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// moveFault is what goes wrong in one move of a port from the first host to the second.
type moveFault struct {
	name string
	// before is called before each step: prepared, stopped, active, released.
	before map[string]func(*fleet)
	// alone: the hosts don't hear of each other, or not from each other, until heal is called. The target then has
	// nothing of what the port was before the guest arrived.
	alone bool
	// unnamed: no controller names the hosts to each other before heal. What the port was goes with it at its release.
	unnamed bool
	heal    func(*fleet)
}

// moveFaults are the faults. Each leaves the fleet as it was.
func moveFaults() []moveFault {
	kill := func(f *fleet) { f.controller.End(syscall.SIGKILL) }
	start := func(f *fleet) { f.controller.Start() }
	apart := func(is bool) func(*fleet) { return func(f *fleet) { f.apart(is) } }
	return []moveFault{
		{name: "no controller before the port is prepared", before: map[string]func(*fleet){"prepared": kill},
			alone: true, unnamed: true, heal: start},
		{name: "no controller before the guest stops", before: map[string]func(*fleet){"stopped": kill}, heal: start},
		{name: "no controller before the guest arrives", before: map[string]func(*fleet){"active": kill}, heal: start},
		{name: "no controller before the port is released", before: map[string]func(*fleet){"released": kill},
			heal: start},
		{name: "the hosts are cut off from each other from the start",
			before: map[string]func(*fleet){"prepared": apart(true)}, alone: true, heal: apart(false)},
		{name: "the hosts are cut off from each other while the guest stands still",
			before: map[string]func(*fleet){"stopped": apart(true)}, alone: true, heal: apart(false)},
		{name: "the clock of the target is hours ahead",
			before: map[string]func(*fleet){"prepared": hoursApart(true)}, heal: hoursApart(false)},
	}
}

// apart cuts the hosts off from each other, or joins them again; both reach the controller all the time.
func (f *fleet) apart(is bool) {
	f.t.Helper()
	inside(f.t, f.network, func() error {
		for n := range f.hosts {
			l, err := netlink.LinkByName(fmt.Sprintf("mgmt-%d", n))
			if err == nil {
				err = netlink.LinkSetIsolated(l, is)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// A port moves with its guest whatever happens to the controller, and to the way between the hosts: it speaks where the
// guest runs, on one host at a time, and what it had arrives at last, once.
func TestS100_AMoveCompletesWithoutAControllerOrAWayBetweenTheHosts(t *testing.T) {
	testkit.Long(t, "moves a port once for each fault; TestS79_AStaticPortFollowsALiveMigration has none of them")
	t.Parallel()
	f := newPortFleet(t)
	for i, c := range moveFaults() {
		t.Run(c.name, func(t *testing.T) {
			row := *f
			row.t = t
			row.suffersMove(30+i, c)
		})
	}
	t.Run("the target loses its power after the guest has arrived", func(t *testing.T) {
		row := *f
		row.t = t
		row.losesTarget(30 + len(moveFaults()))
	})
}

// startsMoving has a VM run on the first host, and its port waits for it on the second.
func (f *fleet) startsMoving(vm int, before func(step string)) (port string, mac [6]byte) {
	f.t.Helper()
	port, mac = fmt.Sprintf("m%d", vm), fleetMAC(0, vm)
	for n := range f.hosts { // guests that send nothing by themselves: a frame says where the guest runs
		f.guests[fmt.Sprintf("%s@%d", port, n)] = f.hosts[n].QuietlyIn(fmt.Sprintf("%s-%d", port, n), port,
			fleetMAC(n, vm))
	}
	f.mustStartVM(0, vm, port, "web", "--mac", plan.MAC(mac).String())
	f.sendsAs(0, port, mac, framesBefore)
	f.counted(0, port, framesBefore)
	before("prepared")
	f.hosts[1].must("port", "connect", port, "--incoming", "--switch", "dvs", "--port-group", "web", "--device", port,
		"--mac", plan.MAC(mac).String(), "--vm-uuid", uuid(vm), "--adapter", "net0")
	f.hosts[1].Await("the port waits for its guest", func() bool { return f.port(1, port).Wait != nil })
	return port, mac
}

// speaks makes sure that a port speaks on this host alone, of those that have it.
func (f *fleet) speaks(host int, port string, there ...int) {
	f.t.Helper()
	for _, n := range there {
		if speaks := f.port(n, port).Wait == nil; speaks != (n == host) {
			f.t.Errorf("host %d: port %s speaks: %v", n, port, speaks)
		}
	}
}

// suffersMove moves the port of a VM while something goes wrong.
func (f *fleet) suffersMove(vm int, c moveFault) {
	t := f.t
	t.Helper()
	before := func(step string) {
		if do := c.before[step]; do != nil {
			do(f)
		}
	}
	port, mac := f.startsMoving(vm, before)
	switch {
	case !c.alone || c.before["prepared"] == nil:
		f.moves(1, port, in("copied"), "a copy is there")
	case !c.unnamed:
		f.moves(0, port, in("prepared"), "it knows which host takes over")
	}
	f.speaks(0, port, 0, 1)
	before("stopped")
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Fatal(err)
	}
	f.speaks(-1, port, 0, 1)
	if !c.alone {
		f.moves(1, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	}
	before("active")
	f.sendsAs(1, port, mac, framesAfter)
	f.hosts[1].Await("the guest has arrived", func() bool { return f.port(1, port).Wait == nil })
	f.speaks(1, port, 0, 1)
	if !c.alone {
		f.counted(1, port, framesBefore+framesAfter)
	}
	before("released")
	if c.unnamed {
		c.heal(f)
	}
	if !c.alone || c.unnamed {
		f.moves(0, port, in("active"), "it knows that the guest runs elsewhere")
	}
	for range 2 { // a double release
		if err := f.hosts[0].ReleaseMovedPort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
			t.Error(err)
		}
	}
	if !c.unnamed {
		c.heal(f)
	}
	f.moves(1, port, func(m api.PortMove) bool { return m.Phase == "active" && m.Last }, "the last copy")
	f.hosts[1].Await("the counters are those of both hosts", func() bool {
		return f.hosts[1].Counter(port, "packetsInUnicast") == framesBefore+framesAfter
	})
	m, _ := f.moveOf(1, port)
	f.locates(uuid(vm), m.Generation)
	for n := range f.hosts {
		if texts := f.conflictEvents(n, port); len(texts) > 0 {
			t.Errorf("host %d reports a conflict: %q", n, texts)
		}
	}
	f.hosts[1].must("port", "disconnect", port)
}

// losesTarget has the target lose its power when the guest has arrived: the source stays silent until the guest is
// started there again, and the target finds that out when it is back.
func (f *fleet) losesTarget(vm int) {
	t := f.t
	t.Helper()
	port, mac := f.startsMoving(vm, func(string) {})
	f.moves(1, port, in("copied"), "a copy is there")
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Fatal(err)
	}
	f.sendsAs(1, port, mac, framesAfter)
	f.moves(0, port, in("active"), "it knows that the guest runs elsewhere")
	target, _ := f.moveOf(1, port)
	f.hosts[1].Reboot()
	f.controller.Await("the target is gone", func() bool {
		return f.controller.StateOf("esx1") == api.HostDisconnected
	})
	f.speaks(-1, port, 0)
	f.sendsAs(0, port, mac, framesAfter) // its manager starts the VM here again
	f.hosts[0].Await("the guest runs at the source", func() bool { return f.port(0, port).Wait == nil })
	f.counted(0, port, framesBefore+framesAfter)
	source, _ := f.moveOf(0, port)
	if source.Generation <= target.Generation {
		t.Errorf("the source has generation %d, the target had %d", source.Generation, target.Generation)
	}
	f.hosts[1].Start("")
	f.controller.Await("the controller has the port on the source", func() bool {
		got, err := f.controller.Fleet.LocatePorts(t.Context(), api.LocateQuery{VM: uuid(vm)})
		return err == nil && len(got.Ports) == 1 && got.Ports[0].Host == "esx0" &&
			got.Ports[0].Generation == source.Generation
	})
	f.speaks(0, port, 0)
}
