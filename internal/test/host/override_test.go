package host

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
)

func TestS41_BlockedPortPassesNothingAndTheEventIsLogged(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoGroups))
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	h.must("port", "block", "vm1/eth0")
	if reaches(vm, "192.0.2.1") {
		t.Error("a blocked port passes traffic")
	}
	h.await("event", func() bool { return strings.Contains(h.log.String(), "msg=blocked port=lab/vm1/eth0") })
	if p := h.port("vm1/eth0"); p.State != api.Blocked || len(p.Overrides) != 1 {
		t.Errorf("blocked: %+v", p)
	}
	h.must("port", "unblock", "vm1/eth0")
	if !pings(vm, "192.0.2.1") {
		t.Error("no traffic after unblock")
	}
	if p := h.port("vm1/eth0"); len(p.Overrides) != 0 {
		t.Errorf("an override is left: %v", p.Overrides)
	}
}

func TestS9_CommandIsRefusedWhereThePortGroupForbidsIt(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", strings.Replace(twoGroups, "portGroup: web, device: port1",
		"portGroup: strict, device: port1", 1)))
	_, errs, status := h.heddle("port", "block", "vm1/eth0")
	if status != 2 || !strings.Contains(errs, "strict") {
		t.Errorf("status %d: %s", status, errs)
	}
	if p := h.port("vm1/eth0"); len(p.Overrides) != 0 {
		t.Errorf("refused and kept: %v", p.Overrides)
	}
}

func TestS10_OverrideEndsWithTheOwnersConnection(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", twoGroups)
	h.start("--config", file)
	h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	h.must("port", "block", "vm1/eth0")
	h.kill(syscall.SIGKILL)
	h.start("--config", file) // a restart of the agent is not a disconnection of the owner
	if p := h.port("vm1/eth0"); p.State != api.Blocked {
		t.Errorf("restart lifted the block: %+v", p)
	}
	h.ip("link del port1")
	h.awaitPort("vm1/eth0", api.Pending)
	h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)

	h.must("port", "move", "vm1/eth0", "--port-group", "keep")
	h.must("port", "block", "vm1/eth0")
	h.ip("link del port1")
	h.awaitPort("vm1/eth0", api.Pending)
	if p := h.port("vm1/eth0"); len(p.Overrides) != 2 {
		t.Errorf("resetAtDisconnect false: %v", p.Overrides)
	}
}

func TestMovedPortIsInTheOtherSegment(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoGroups))
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	h.must("port", "move", "vm1/eth0", "--port-group", "other")
	if reaches(vm, "192.0.2.1") {
		t.Error("VLAN 200 reaches VLAN 100")
	}
	if p := h.port("vm1/eth0"); p.VLAN.String() != "access 200" || p.PortGroup != "other" || p.State != api.Up {
		t.Errorf("moved: %+v", p)
	}
	h.must("port", "move", "vm1/eth0", "--port-group", "web")
	if !pings(vm, "192.0.2.1") {
		t.Error("moved back: no traffic")
	}
	if _, errs, status := h.heddle("port", "move", "vm1/eth0", "--port-group", "nope"); status != 1 ||
		!strings.Contains(errs, "--port-group nope: switch lab has no such port group") {
		t.Errorf("unknown port group: status %d, %s", status, errs)
	}
}
