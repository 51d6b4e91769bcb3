package host

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/test/testkit"
)

// An agent silences a port in the kernel first. One that dies before it has written that down leaves a silent port, and
// the next agent finds it in the kernel: it doesn't speak for a guest that may run elsewhere (S100).
func TestS100_ASilentPortStaysSilentWhenItsAgentDiesTooEarly(t *testing.T) {
	testkit.Long(t, "kills agents; TestS50_S99_AGuestThatArrivesIsAnnouncedOnTheWire has silent ports")
	testkit.Never(t)
	h := newHost(t)
	vm := h.guest("p-vm", "52:54:00:00:00:01", "192.0.2.1/24")
	other := h.guest("p-other", "52:54:00:00:00:02", "192.0.2.2/24")
	// The guest sends nothing by itself: its first frame would end the wait.
	run(t, vm, "sysctl -qw net.ipv6.conf.eth0.disable_ipv6=1")
	run(t, vm, "ip neigh replace 192.0.2.2 lladdr 52:54:00:00:00:02 dev eth0 nud permanent")
	config := h.file("heddle.yaml", hookSwitch)
	h.start("--config", config)
	h.must("port", "connect", "other", "--port-group", "web", "--device", "p-other", "--mac", "52:54:00:00:00:02")
	connect := []string{"port", "connect", "vm", "--port-group", "web", "--device", "p-vm", "--mac",
		"52:54:00:00:00:01"}
	h.must(connect...)
	h.awaitPort("vm", api.Up)
	if !pings(other, "192.0.2.1") {
		t.Fatal("the guests do not reach each other")
	}
	state, kept := filepath.Join(h.dir, "state"), filepath.Join(h.dir, "kept")
	if err := os.CopyFS(kept, os.DirFS(state)); err != nil {
		t.Fatal(err)
	}
	h.must(append(connect, "--incoming")...)
	h.awaitPort("vm", api.Waiting)
	h.kill(syscall.SIGKILL)
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(kept, state); err != nil {
		t.Fatal(err)
	}
	h.start("--config", config)
	p := h.port("vm")
	if p.State != api.Waiting || p.Wait == nil || !p.Wait.Left || p.Wait.WhyCode != observe.WaitRecordLost {
		t.Errorf("the port of a guest that may run elsewhere is %s: %+v", p.State, p.Wait)
	}
	if reaches(other, "192.0.2.1") {
		t.Error("it was served")
	}
	if !pings(vm, "192.0.2.2") { // the guest runs here after all
		t.Error("its own frames do not pass")
	}
	h.awaitPort("vm", api.Up)
	if !pings(other, "192.0.2.1") {
		t.Error("it is not served after its own frame")
	}
}
