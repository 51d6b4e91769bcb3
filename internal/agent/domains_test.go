package agent

import (
	"path/filepath"
	"testing"

	"heddle/internal/agent/presence"
	"heddle/internal/host/guest"
	"heddle/internal/spec"
)

const vmDomain = "8f0b7c1e-0000-4000-8000-0000000000a1"

// domainRig has port "vm" of a libvirt domain, on a tap, and no libvirt.
func domainRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, base)
	r.dev.tap("tap0")
	if err := r.connect(spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01",
		Domain: "8F0B7C1E-0000-4000-8000-0000000000A1"}); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) libvirtSays(run guest.Run) {
	r.waiting.SawDomains(map[string]guest.Run{vmDomain: run, "another": guest.RunLeft})
}

func TestS99_LibvirtSaysWhereAGuestRunsThatHasNoMonitor(t *testing.T) {
	r := domainRig(t)
	silent := func(want bool) {
		t.Helper()
		if got := r.fact("vm").Waits(); got != want || r.speaks("vm") == want {
			t.Errorf("it waits: %v, and is spoken for: %v", got, r.speaks("vm"))
		}
	}
	silent(false)
	r.libvirtSays(guest.RunHere)
	silent(false)
	r.libvirtSays(guest.RunLeft)
	silent(true)
	first := r.wait("vm")
	if !first.Left || first.Text() != "its guest has left by a migration: libvirt says that it was stopped" {
		t.Errorf("%+v", first)
	}
	r.libvirtSays(guest.RunLeft) // by another daemon, or at its end
	if n := r.wait("vm").Number; n != first.Number {
		t.Errorf("wait %d after %d", n, first.Number)
	}
	r.libvirtSays(guest.RunHere) // the migration was cancelled
	silent(false)
	if r.kernel.awake[id("vm")] != first.Number {
		t.Errorf("the program was not told that wait %d is over: %v", first.Number, r.kernel.awake)
	}
	// The target of a migration: a silent guest's port waits until libvirt has resumed it.
	r.dev.tap("tap1")
	if err := r.connectIncoming(spec.Port{Name: "vm2", PortGroup: "web", Device: "tap1", MAC: "52:54:00:00:00:02",
		Domain: vmDomain}); err != nil {
		t.Fatal(err)
	}
	r.libvirtSays(guest.RunLeft) // paused for the migration, as libvirt answers
	if w := r.wait("vm2"); w.Left || w.Awake {
		t.Errorf("%+v", w)
	}
	r.libvirtSays(guest.RunHere)
	if r.fact("vm2").Waits() {
		t.Error("a guest that was resumed has a port that waits")
	}
}

// The QEMU monitor is nearer to the guest than libvirt: if it answers, it alone counts.
func TestS99_AMonitorGoesBeforeLibvirt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "qmp")
	q := newFakeQEMU(t, path, nicFilter("52:54:00:00:00:01", false))
	q.says("running")
	r := monitoredPort(t, path)
	r.until("running", func() bool { return r.wait("vm").Awake && !r.fact("vm").Waits() })
	if _, err := r.reconnect(spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01",
		Domain:  vmDomain,
		Monitor: spec.Monitor{Socket: path, NIC: "net0"}}); err != nil {
		t.Fatal(err)
	}
	r.libvirtSays(guest.RunLeft)
	if r.fact("vm").Waits() {
		t.Error("libvirt had a port wait whose monitor says that the guest runs")
	}
	q.says("postmigrate", stopEvent)
	r.until("silent", func() bool { return r.wait("vm").Left && r.fact("vm").Waits() })
	r.libvirtSays(guest.RunHere)
	if !r.fact("vm").Waits() {
		t.Error("libvirt woke a port whose monitor says that the guest has left")
	}
	q.end()
	r.until("the monitor is lost", func() bool { return r.waiting.SeenBy(path).Run == guest.RunUnknown })
	r.libvirtSays(guest.RunHere)
	if r.fact("vm").Waits() {
		t.Error("without a monitor's word libvirt's does not count")
	}
}

// While a monitor has not answered yet, what libvirt reports ends the doubt, either way.
func TestS99_LibvirtEndsTheDoubtOfAMonitorThatDoesNotAnswer(t *testing.T) {
	r := newRig(t, base)
	r.dev.tap("tap0")
	err := r.connect(spec.Port{Name: "vm", PortGroup: "web", Device: "tap0", MAC: "52:54:00:00:00:01", Domain: vmDomain,
		Monitor: spec.Monitor{Socket: filepath.Join(t.TempDir(), "qmp"), NIC: "net0"}})
	if err != nil || !r.wait("vm").Doubt {
		t.Fatalf("%v %+v", err, r.wait("vm"))
	}
	r.libvirtSays(guest.RunLeft)
	w := r.wait("vm")
	if !w.Left || w.Doubt || w.Awake || !r.fact("vm").Waits() {
		t.Errorf("%+v", w)
	}
	w.Since = w.Since.Add(-presence.DoubtAtMost)
	r.state.PutWait(w)
	if r.waiting.EndDoubts() || r.kernel.awake != nil && r.kernel.awake[id("vm")] == w.Number {
		t.Error("the port of a guest that has left was woken")
	}
}
