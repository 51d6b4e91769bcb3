package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

const twoGroups = `
switches:
  - name: lab
    portGroups:
      - {name: web, vlan: {access: 100}}
      - {name: other, vlan: {access: 200}}
      - {name: keep, vlan: {access: 100}, overrides: {resetAtDisconnect: false}}
      - {name: strict, vlan: {access: 100}, overrides: {blocked: false}}
ports:
  - {name: vm1/eth0, switch: lab, portGroup: web, device: port1, mac: "02:00:00:00:01:01"}
  - {name: vmk0, switch: lab, portGroup: web, role: host, addresses: [192.0.2.1/24, "2001:db8::1/64"], mtu: 1400}
`

func TestPortFollowsItsDevice(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoGroups))
	if got := h.port("vm1/eth0"); got.State != api.Pending || !strings.Contains(got.Reason, "port1") {
		t.Errorf("without a device: %+v", got)
	}
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	if !pings(vm, "192.0.2.1") {
		t.Error("guest does not reach the host interface")
	}
	h.ip("link del port1")
	h.awaitPort("vm1/eth0", api.Pending)
	vm2 := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	if !pings(vm2, "192.0.2.1") {
		t.Error("a new device of the name does not serve")
	}
	run(t, vm2, "ip link set eth0 down")
	h.awaitPort("vm1/eth0", api.Down)
}

func TestHostInterfaceHasWhatTheFileSays(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", twoGroups)
	h.start("--config", file)
	out := run(t, h.ns, "ip -o addr show dev vmk0")
	for _, want := range []string{"192.0.2.1/24", "2001:db8::1/64"} {
		if !strings.Contains(out, want) {
			t.Errorf("address %s missing:\n%s", want, out)
		}
	}
	before := run(t, h.ns, "ip -o link show dev vmk0")
	if !strings.Contains(before, "mtu 1400") || !strings.Contains(before, "UP") {
		t.Errorf("vmk0: %s", before)
	}
	if mac := h.port("vmk0").MAC; !strings.Contains(before, mac) || mac == "" {
		t.Errorf("the port has MAC %q, the device %s", mac, before)
	}
	h.kill(syscall.SIGKILL)
	h.start("--config", file)
	if after := run(t, h.ns, "ip -o link show dev vmk0"); after != before {
		t.Errorf("restart changed the device:\n%s%s", before, after)
	}
	h.must("apply", "-f", h.file("next.yaml", strings.Replace(twoGroups, "192.0.2.1/24, ", "192.0.2.7/24, ", 1)))
	if out := run(t, h.ns, "ip -o addr show dev vmk0"); strings.Contains(out, "192.0.2.1/24") ||
		!strings.Contains(out, "192.0.2.7/24") {
		t.Errorf("apply did not change the address:\n%s", out)
	}
	h.must("apply", "-f", h.file("none.yaml", "switches:\n  - {name: lab, portGroups: [{name: web}]}\n"))
	if out := run(t, h.ns, "ip -o link"); strings.Contains(out, "vmk0") {
		t.Errorf("the interface outlives its port:\n%s", out)
	}
}

func TestRunTimePortSurvivesRestartAndApply(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", twoGroups)
	h.start("--config", file)
	vm := h.guest("tap7", "02:00:00:00:07:07", "192.0.2.17/24")
	h.must("port", "connect", "vm7/eth0", "--switch", "lab", "--port-group", "web", "--device", "tap7")
	h.awaitPort("vm7/eth0", api.Up)
	number := h.port("vm7/eth0").Number
	h.kill(syscall.SIGKILL)
	h.start("--config", file)
	p := h.port("vm7/eth0")
	if p.Origin != api.FromRun || p.State != api.Up || p.Number != number || p.MAC != "02:00:00:00:07:07" {
		t.Errorf("after restart: %+v", p)
	}
	h.must("apply", "-f", file)
	if !pings(vm, "192.0.2.1") {
		t.Error("no traffic after restart and apply")
	}
	declared := strings.Replace(twoGroups, "vm1/eth0", "vm7/eth0", 1)
	_, errs, status := h.heddle("apply", "-f", h.file("clash.yaml", declared))
	if status != 2 || !strings.Contains(errs, "vm7/eth0") {
		t.Errorf("a name in both layers: status %d, %s", status, errs)
	}
	if p := h.port("vm1/eth0"); p.Name != "vm1/eth0" {
		t.Error("a refused apply changed something")
	}
	h.must("port", "disconnect", "vm7/eth0")
	if _, _, status := h.heddle("port", "show", "vm7/eth0"); status != 1 {
		t.Errorf("still there after disconnect: status %d", status)
	}
	if _, errs, status := h.heddle("port", "disconnect", "vm1/eth0"); status != 2 ||
		!strings.Contains(errs, "declared") {
		t.Errorf("disconnect of a declared port: status %d, %s", status, errs)
	}
}

func TestS3_GuestThatChangesItsMACIsInViolation(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoGroups))
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	run(t, vm, "ip link set eth0 address 02:00:00:00:66:66")
	h.await("violation", func() bool { return h.port("vm1/eth0").Violation != "" })
	if !strings.Contains(h.log.String(), "security violation") {
		t.Error("no event")
	}
	if reaches(vm, "192.0.2.1") {
		t.Error("a port in violation receives")
	}
	run(t, vm, "ip link set eth0 address 02:00:00:00:01:01")
	h.await("over", func() bool { return h.port("vm1/eth0").Violation == "" })
	if !pings(vm, "192.0.2.1") {
		t.Error("no traffic with the initial MAC again")
	}
}

func TestD1_GuestThatAsksForPromiscuousModeIsSeen(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoGroups))
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.await("no", func() bool { return h.port("vm1/eth0").Promiscuous == "no" })
	run(t, vm, "ip link set eth0 promisc on")
	h.await("yes", func() bool { return h.port("vm1/eth0").Promiscuous == "yes" })
}

func TestDeviceThatLeavesTheHostIsDetached(t *testing.T) {
	h := newHost(t)
	h.start("--config", h.file("heddle.yaml", twoGroups))
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	pins := filepath.Join(h.dir, "run", "bpf", h.name, "links")
	before, err := os.ReadDir(pins)
	if err != nil {
		t.Fatal(err)
	}
	h.ip("link set port1 netns " + vm.Name)
	h.awaitPort("vm1/eth0", api.Pending)
	after, err := os.ReadDir(pins)
	if err != nil || len(after) != len(before)-1 {
		t.Errorf("%d attachments before, %d after (%v)", len(before), len(after), err)
	}
}

func TestSecondAgentOfTheNameIsRefused(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", twoGroups)
	h.start("--config", file)
	_, errs, status := h.heddle("agent", "--config", file)
	if status != 1 || !strings.Contains(errs, "running") {
		t.Errorf("status %d: %s", status, errs)
	}
	h.must("switch", "list")
}

func TestWrongFileAtStartChangesNothing(t *testing.T) {
	h := newHost(t)
	before := run(t, h.ns, "ip -o link")
	_, errs, status := h.heddle("agent", "--config",
		h.file("bad.yaml", strings.Replace(twoGroups, "access: 100", "access: 4095", 1)))
	if status != 2 || !strings.Contains(errs, "bad.yaml:5:") {
		t.Errorf("status %d: %s", status, errs)
	}
	if after := run(t, h.ns, "ip -o link"); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
}

func TestDeviceThatLeftWhileTheAgentWasAwayIsDetached(t *testing.T) {
	h := newHost(t)
	file := h.file("heddle.yaml", twoGroups)
	h.start("--config", file)
	vm := h.guest("port1", "02:00:00:00:01:01", "192.0.2.11/24")
	h.awaitPort("vm1/eth0", api.Up)
	pins := filepath.Join(h.dir, "run", "bpf", h.name, "links")
	before, err := os.ReadDir(pins)
	if err != nil {
		t.Fatal(err)
	}
	h.kill(syscall.SIGKILL)
	h.ip("link set port1 netns " + vm.Name)
	h.start("--config", file)
	after, err := os.ReadDir(pins)
	if err != nil || len(after) != len(before)-1 {
		t.Errorf("%d attachments before, %d after (%v)", len(before), len(after), err)
	}
}

func TestMissingPrivilegeIsNamed(t *testing.T) {
	h := newHost(t)
	testkit.Tool(t, "setpriv")
	path, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatal(err)
	}
	for verb, who := range map[string]string{"agent": "the agent", "down": "heddle down"} {
		cmd := h.command()
		cmd.Args = []string{"setpriv", "--bounding-set=-all", "--inh-caps=-all", "heddle", verb}
		cmd.Path, cmd.Err = path, nil
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), who+" needs CAP_NET_ADMIN") ||
			!strings.Contains(string(out), "run it as root") {
			t.Errorf("%s: %v: %s", verb, err, out)
		}
	}
}

func TestPinnedObjectsNeedAMountThatStays(t *testing.T) {
	h := newHost(t)
	inside := func() (string, error) {
		cmd := h.command()
		path, err := exec.LookPath("ip")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Err, cmd.Args = path, nil, []string{"ip", "netns", "exec", h.ns.Name, "timeout", "1", "heddle",
			"agent"}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := inside(); err == nil || !strings.Contains(out, "mount -t bpf -o mode=0700 bpf") {
		t.Errorf("with a mount namespace of its own: %v: %s", err, out)
	}
	h.start()
	h.kill(syscall.SIGTERM) // the mount stays
	if out, _ := inside(); !strings.Contains(out, "msg=ready") {
		t.Errorf("with the mount there: %s", out)
	}
}
