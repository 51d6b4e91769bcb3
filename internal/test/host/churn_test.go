package host

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// programs is how many programs run where frames enter a device.
func programs(t *testing.T, ns *netns.NS, device string) int {
	t.Helper()
	return programsAt(t, ns, device, ebpf.AttachTCXIngress)
}

func programsAt(t *testing.T, ns *netns.NS, device string, where ebpf.AttachType) (n int) {
	t.Helper()
	err := ns.Do(func() error {
		d, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		q, err := link.QueryPrograms(link.QueryOptions{Target: d.Index, Attach: where})
		if err == nil {
			n = len(q.Programs)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func indexOf(t *testing.T, ns *netns.NS, device string) (index int) {
	t.Helper()
	err := ns.Do(func() error {
		d, err := net.InterfaceByName(device)
		if err == nil {
			index = d.Index
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// inService says that the port's device is set up in full and its traffic passes.
func (h *host) inService(port, device string, vm *netns.NS, to string) {
	h.t.Helper()
	// The port may be up still as it was before, when the kernel's notification is on its way.
	h.await(device+" has one program", func() bool { return programs(h.t, h.ns, device) == 1 })
	h.await(device+" takes no part in IPv6 itself", func() bool {
		return strings.TrimSpace(run(h.t, h.ns, "sysctl -n net.ipv6.conf."+device+".disable_ipv6")) == "1"
	})
	h.awaitPort(port, api.Up)
	if !pings(vm, to) {
		h.t.Errorf("no traffic from %s", port)
	}
}

// What happens to devices, with the agent running and with none: one that left is detached, one that is there again
// under its name, even with its old index, is set up in full.
func TestDevicesThatComeAndGo(t *testing.T) {
	testkit.Long(t, "takes devices away in each way; TestPortFollowsItsDevice has one")
	for _, away := range []bool{false, true} {
		t.Run(fmt.Sprintf("agent away %v", away), func(t *testing.T) {
			testkit.Tool(t, "sysctl")
			h, _, a, b := twoVMs(t)
			// meanwhile has something happen while the agent runs, or while it is dead.
			meanwhile := func(what func()) {
				if away {
					h.kill(syscall.SIGKILL)
				}
				what()
				if away {
					h.start()
				}
			}
			elsewhere := testkit.NS(t, "elsewhere")
			index := indexOf(t, h.ns, "pa")

			meanwhile(func() { h.ip("link set pa name px") })
			h.awaitPort("a", api.Pending)
			if n := programs(t, h.ns, "px"); n != 0 {
				t.Errorf("renamed: %d programs run on a device that is no port", n)
			}
			meanwhile(func() { h.ip("link set px name pa") })
			h.inService("a", "pa", a, "192.0.2.11")

			meanwhile(func() { h.ip("link set pa netns " + elsewhere.Name) })
			h.awaitPort("a", api.Pending)
			run(t, elsewhere, "ip link set pa up")
			if n := programs(t, elsewhere, "pa"); n != 0 {
				t.Errorf("moved away: %d programs still run there", n)
			}
			meanwhile(func() { run(t, elsewhere, "ip link set pa netns "+h.ns.Name) })
			h.inService("a", "pa", a, "192.0.2.11")

			index = indexOf(t, h.ns, "pa")
			meanwhile(func() {
				h.ip("link del pa")
				h.ip(fmt.Sprintf("link add pa index %d type veth peer name eth0 address 02:00:00:00:00:0a netns %s",
					index, a.Name))
				run(t, a, "ip link set eth0 up")
				run(t, a, "ip addr add 192.0.2.10/24 dev eth0")
			})
			h.inService("a", "pa", a, "192.0.2.11")

			meanwhile(func() { h.ip("link del pa") })
			h.awaitPort("a", api.Pending)
			h.inService("b", "pb", b, "192.0.2.11")
		})
	}
}

// A reboot takes devices, pins and everything under /run, and leaves the state directory: ports come back as devices
// appear.
func TestARebootBringsDeclaredAndRunTimePortsBack(t *testing.T) {
	testkit.Tool(t, "sysctl")
	h, _, a, _ := twoVMs(t)
	c := h.guest("pc", "02:00:00:00:00:0c", "192.0.2.12/24")
	h.must("port", "connect", "c", "--port-group", "web", "--device", "pc")
	h.awaitPort("c", api.Up)
	number := h.port("c").Number
	h.kill(syscall.SIGKILL)
	for _, device := range []string{"pa", "pb", "pc"} {
		h.ip("link del " + device)
	}
	h.forgetBoot()
	h.start()
	for _, port := range []string{"a", "b", "c"} {
		if p := h.port(port); p.State != api.Pending {
			t.Errorf("before its device is there: %+v", p)
		}
	}
	plug := func(device string, vm *netns.NS, mac, address string) {
		h.ip(fmt.Sprintf("link add %s type veth peer name eth0 address %s netns %s", device, mac, vm.Name))
		run(t, vm, "ip link set eth0 up")
		run(t, vm, "ip addr add "+address+" dev eth0")
	}
	plug("pc", c, "02:00:00:00:00:0c", "192.0.2.12/24")
	h.awaitPort("c", api.Up)
	plug("pa", a, "02:00:00:00:00:0a", "192.0.2.10/24")
	h.inService("a", "pa", a, "192.0.2.12")
	h.inService("c", "pc", c, "192.0.2.10")
	if p := h.port("c"); p.Origin != api.FromRun || p.Number != number {
		t.Errorf("port c: %+v, had number %d", p, number)
	}
	if p := h.port("b"); p.State != api.Pending {
		t.Errorf("port b: %+v", p)
	}
}

const rebootedHost = `
switches:
  - name: lab
    uplinks: [{name: u1, device: up1}, {name: u2, device: up2}]
    defaults: {teaming: {policy: explicit, active: [u1, u2]}}
    portGroups:
      - {name: web, vlan: {none: true}}
ports:
  - {name: vmk0, switch: lab, portGroup: web, role: host, mac: "02:00:00:00:00:10", addresses: [192.0.2.1/24]}
  - {name: a, switch: lab, portGroup: web, device: pa, mac: "02:00:00:00:00:0a"}
`

// A reboot takes host ports' devices as well: they are made again at once, with their MACs and addresses, also that one
// which was connected by command. Uplinks serve as their devices appear, in any order, set up for it in full.
func TestARebootBringsUplinksAndHostPortsBack(t *testing.T) {
	testkit.Long(t, "TestARebootBringsDeclaredAndRunTimePortsBack has a reboot")
	h := newHost(t)
	wire := h.wired(2)
	run(t, wire, "ip addr add 192.0.2.99/24 dev far2")
	a := h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
	h.start("--config", h.file("heddle.yaml", rebootedHost))
	h.must("port", "connect", "vmk1", "--port-group", "web", "--role", "host")
	h.uses("at first", "a u1", "vmk0 u1", "vmk1 u1")
	mac := h.port("vmk1").MAC
	h.kill(syscall.SIGKILL)
	for _, device := range []string{"pa", "up1", "up2", "vmk0", "vmk1"} {
		h.ip("link del " + device)
	}
	h.forgetBoot()
	h.start()
	h.awaitPort("vmk0", api.Up)
	h.awaitPort("vmk1", api.Up)
	for device, want := range map[string][]string{"vmk0": {"02:00:00:00:00:10", "inet 192.0.2.1/24"}, "vmk1": {mac}} {
		for _, w := range want {
			if got := run(t, h.ns, "ip -o addr show "+device) +
				run(t, h.ns, "ip -o link show "+device); !strings.Contains(got, w) {
				t.Errorf("device %s has no %s:\n%s", device, w, got)
			}
		}
	}
	if p := h.port("vmk1"); p.Origin != api.FromRun {
		t.Errorf("port vmk1: %+v", p)
	}
	for _, uplink := range []string{"u1", "u2"} {
		if state := h.uplinkState(uplink); state != api.Pending {
			t.Errorf("uplink %s, whose device is not there, is %s", uplink, state)
		}
	}
	h.plug(wire, 2)
	run(t, wire, "ip addr add 192.0.2.99/24 dev far2")
	h.uses("up2 is there", "vmk0 u2", "vmk1 u2")
	if link := run(t, h.ns, "ip -o link show up2"); !strings.Contains(link, "PROMISC") {
		t.Errorf("an uplink's device is not promiscuous: %s", link)
	}
	h.ip("link add pa type veth peer name eth0 address 02:00:00:00:00:0a netns " + a.Name)
	run(t, a, "ip link set eth0 up")
	run(t, a, "ip addr add 192.0.2.10/24 dev eth0")
	h.awaitPort("a", api.Up)
	for _, to := range []string{"192.0.2.99", "192.0.2.1"} {
		if !pings(a, to) {
			t.Errorf("a does not reach %s", to)
		}
	}
	if !pings(h.ns, "192.0.2.99") {
		t.Error("the host does not reach the network by its host port")
	}
	h.plug(wire, 1)
	h.uses("up1 is there", "a u1", "vmk0 u1", "vmk1 u1")
}

// forgetBoot makes the host look as after a reboot.
func (h *host) forgetBoot() {
	h.t.Helper()
	realhost.ForgetBoot(h.t, h.dir, h.name)
}
