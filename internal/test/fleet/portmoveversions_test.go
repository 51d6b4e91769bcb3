package fleet

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// movedText has port groups whose ports may set something of their own.
var movedText = strings.Replace(portsText, "{name: web,", "{name: web, overrides: {security: true, "+
	"stormControl: true},", 1)

// While hosts are updated one after the other, ports move from the version before to the later one and back, by
// controllers of either version, and keep what they have. What the version before does not know is refused before the
// guest comes, unless the operator means it.
func TestS79_S83_S100_APortMovesBetweenTwoVersions(t *testing.T) {
	testkit.Long(t, "builds a later version, and moves ports between the two")
	t.Parallel()
	f := newPortFleet(t)
	f.controller.Define(movedText)
	f.becomes(1, f.hosts[1].Later)
	for i, c := range []struct {
		name   string
		before func(f *fleet)
	}{
		{"from the version before to the later one and back", func(*fleet) {}},
		{"by a later controller", func(f *fleet) { f.exchange(f.controller.Later) }},
		{"from the later version to the one before and back, by a later controller", func(f *fleet) {
			f.becomes(0, f.hosts[0].Later)
			f.becomes(1, f.hosts[1].Earlier)
		}},
		{"the same by a controller before", func(f *fleet) { f.exchange(f.controller.Earlier) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			row := *f
			row.t = t
			c.before(&row)
			row.inState("esx0", api.HostUp)
			row.inState("esx1", api.HostUp)
			row.movesAndComesBack(70 + i)
		})
	}
	t.Run("the version before lacks what the port group has", func(t *testing.T) {
		row := *f
		row.t = t
		row.exchange(row.controller.Later)
		row.lacksTomorrow(80)
	})
}

// becomes has the next agent of a host be one of another version.
func (f *fleet) becomes(n int, version func()) {
	f.t.Helper()
	f.hosts[n].End(syscall.SIGTERM)
	version()
	f.hosts[n].Start("")
	f.hosts[n].Up("uplink1")
}

// movesAndComesBack has a VM go from the first host to the second and back, with what belongs to its port.
func (f *fleet) movesAndComesBack(vm int) {
	t, port := f.t, fmt.Sprintf("m%d", vm)
	t.Helper()
	_, inner := f.startsToMove(vm, port)
	f.hop(vm, 0, 1)
	f.counted(1, port, framesBefore+framesAfter)
	f.hasItsOwn(1, port, inner)
	f.hop(vm, 1, 0)
	f.counted(0, port, framesBefore+2*framesAfter)
	f.hasItsOwn(0, port, inner)
	for n := range f.hosts {
		if texts := f.conflictEvents(n, port); len(texts) > 0 {
			t.Errorf("host %d reports a conflict: %q", n, texts)
		}
	}
	f.hosts[0].must("port", "disconnect", port)
}

// hop moves a VM's port with its guest from one host to the other, where the guest sends framesAfter frames.
func (f *fleet) hop(vm, from, to int, more ...string) {
	t, port, mac := f.t, fmt.Sprintf("m%d", vm), fleetMAC(0, vm)
	t.Helper()
	f.hosts[to].must(append([]string{"port", "connect", port, "--incoming", "--switch", "dvs", "--port-group", "web",
		"--device", port, "--mac", plan.MAC(mac).String(), "--vm-uuid", uuid(vm), "--adapter", "net0"}, more...)...)
	f.moves(to, port, in("copied"), "a copy is there")
	if _, err := f.hosts[from].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Fatal(err)
	}
	f.moves(to, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	if f.port(from, port).Wait == nil || f.port(to, port).Wait == nil {
		t.Error("a port speaks while its guest stands still")
	}
	f.sendsAs(to, port, mac, framesAfter)
	f.moves(to, port, in("active"), "active")
	f.moves(from, port, in("active"), "it knows that the guest runs elsewhere")
	f.speaks(to, port, from, to)
	if err := f.hosts[from].ReleaseMovedPort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
		t.Error(err)
	}
	source, _ := f.moveOf(from, port)
	target, _ := f.moveOf(to, port)
	if source.Phase != "released" || !source.Last || source.Move != target.Move ||
		target.Generation <= source.Generation {
		t.Errorf("from host %d to host %d, in the end:\n%+v\n%+v", from, to, source, target)
	}
}

// lacksTomorrow has a VM of a port group with a security field, which the second host's version does not know, move
// there: that is refused until the operator forces it, and the port stays as it was.
func (f *fleet) lacksTomorrow(vm int) {
	t, port := f.t, fmt.Sprintf("m%d", vm)
	t.Helper()
	f.inState("esx0", api.HostUp)
	f.inState("esx1", api.HostUp)
	text := strings.Replace(movedText, "vlan: {access: 10}", "vlan: {access: 10}, security: {tomorrow: true}", 1)
	if _, refused := f.tries(api.Define{Content: text, AllowUnprotected: true}); refused != "" {
		t.Fatal(refused)
	}
	for n := range f.hosts {
		f.guests[fmt.Sprintf("%s@%d", port, n)] = f.hosts[n].QuietlyIn(fmt.Sprintf("%s-%d", port, n), port,
			fleetMAC(n, vm))
	}
	mac := fleetMAC(0, vm)
	f.mustStartVM(0, vm, port, "web", "--mac", plan.MAC(mac).String())
	f.sendsAs(0, port, mac, framesBefore)
	f.counted(0, port, framesBefore)
	f.controller.Await("the controllers know where the guest runs", func() bool {
		got, err := f.controller.Fleet.LocatePorts(t.Context(), api.LocateQuery{VM: uuid(vm)})
		return err == nil && len(got.Ports) == 1 && got.Ports[0].Host == "esx0"
	})
	err := f.hosts[1].Heddle("port", "connect", port, "--incoming", "--switch", "dvs", "--port-group", "web",
		"--device", port, "--mac", plan.MAC(mac).String(), "--vm-uuid", uuid(vm), "--adapter", "net0")
	if err == nil {
		t.Fatal("a guest is taken that would be less protected")
	}
	f.has("the refusal", err.Error(), "security.tomorrow")
	f.hasNoPort(1, port)
	if f.port(0, port).Wait != nil {
		t.Error("the port is silent at the source since the target refused it")
	}
	f.hop(vm, 0, 1, "--force")
	f.counted(1, port, framesBefore+framesAfter)
	f.hosts[1].must("port", "disconnect", port)
}
