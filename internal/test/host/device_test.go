package host

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// A device takes its attachment along into another namespace, and may leave its index to another one. An agent that was
// dead meanwhile knows both only by asking.
func TestDeviceReplacedWhileTheAgentWasDead(t *testing.T) {
	testkit.Long(t, "TestDeviceThatLeftWhileTheAgentWasAwayIsDetached has a device that leaves meanwhile")
	testkit.Tool(t, "bpftool")
	h, file, _, _ := twoVMs(t)
	h.kill(syscall.SIGKILL)
	elsewhere := testkit.NS(t, "else")
	index, _, _ := strings.Cut(run(t, h.ns, "ip -o link show pa"), ":")
	h.ip("link set pa netns " + elsewhere.Name)
	run(t, elsewhere, "ip link set pa up")
	next := testkit.NS(t, "vm")
	h.ip(fmt.Sprintf("link add pa index %s type veth peer name eth0 address 02:00:00:00:00:0a netns %s", index,
		next.Name))
	h.ip("link set pa up")
	run(t, next, "ip link set eth0 up")
	run(t, next, "ip addr add 192.0.2.10/24 dev eth0")
	h.start("--config", file)
	h.awaitPort("a", api.Up)
	if !pings(next, "192.0.2.11") {
		t.Error("the new device is up and carries nothing")
	}
	if out := run(t, elsewhere, "bpftool net show"); strings.Contains(out, "heddle") {
		t.Errorf("the device in the other namespace still has the program:\n%s", out)
	}
}

// Two ports on one device would take each other's frames.
func TestSwitchEndOfAHostPortServesNoOtherPort(t *testing.T) {
	h, _, a, _ := twoVMs(t)
	h.must("port", "connect", "vmk0", "--port-group", "web", "--role", "host", "--address", "192.0.2.1/24")
	h.must("port", "connect", "thief", "--port-group", "web", "--device", "sw-vmk0")
	if p := h.port("thief"); p.State != api.Pending || !strings.Contains(p.Reason, "connected already") {
		t.Errorf("port thief is %s: %s", p.State, p.Reason)
	}
	if !pings(a, "192.0.2.1") {
		t.Error("the host port lost its traffic")
	}
}

// An uplink's device that was in another namespace while the agent was killed and started again is given back as it was
// before it was an uplink: promiscuous mode went with it and came back with it.
func TestUplinkDeviceThatWasAwayOverARestartIsGivenBack(t *testing.T) {
	testkit.Long(t, "TestDownLeavesNothing has devices that are given back")
	h := newHost(t)
	h.wired(1)
	elsewhere := testkit.NS(t, "elsewhere")
	promiscuous := func() bool { return strings.Contains(run(t, h.ns, "ip -o link show up1"), "PROMISC") }
	if promiscuous() {
		t.Fatal("the device is promiscuous before: this test is void")
	}
	h.start("--config", h.file("heddle.yaml", "switches:\n  - {name: lab, uplinks: [{name: u1, device: up1}], "+
		"portGroups: [{name: web}]}\n"))
	h.await("u1 is up", func() bool { return h.uplinkState("u1") == api.Up })
	if !promiscuous() {
		t.Fatal("an uplink's device is not promiscuous")
	}
	h.ip("link set up1 netns " + elsewhere.Name)
	h.await("u1 is missed", func() bool { return h.uplinkState("u1") == api.Pending })
	for range 2 {
		h.kill(syscall.SIGKILL)
		h.start()
	}
	run(t, elsewhere, "ip link set up1 netns "+h.ns.Name)
	h.await("u1 is back", func() bool { return h.uplinkState("u1") == api.Up })
	if !promiscuous() {
		t.Error("the device came back without promiscuous mode: this test is void")
	}
	h.must("down")
	if promiscuous() {
		t.Error("the device stays promiscuous")
	}
}

// settings are what Heddle changes on a device: flags, and whether the host's IPv6 speaks on it and its ARP answers for
// others.
func (h *host) settings(device string) string {
	h.t.Helper()
	link := run(h.t, h.ns, "ip -o link show "+device)
	flags := link[strings.Index(link, "<"):strings.Index(link, ">")]
	var kept []string
	for _, f := range strings.Split(flags, ",") {
		if f == "UP" || f == "PROMISC" {
			kept = append(kept, f)
		}
	}
	return fmt.Sprint(kept, run(h.t, h.ns, "sysctl -n net.ipv6.conf."+device+".disable_ipv6 net.ipv4.conf."+device+
		".arp_ignore"))
}

// A device that somebody renamed is still the one that was taken: it is given back as it was, by its release as by
// "heddle down".
func TestARenamedDeviceIsGivenBack(t *testing.T) {
	testkit.Long(t, "starts agents anew; TestDownLeavesNothing has devices that are given back")
	testkit.Tool(t, "sysctl")
	config := strings.Replace(twoGuests, "name: lab", "name: lab\n    uplinks: [{name: u1, device: up1}]", 1) +
		"  - {name: vmk0, switch: lab, portGroup: web, role: host}\n"
	for _, how := range []string{"agent runs", "agent away until down", "agent away", "twice"} {
		t.Run(how, func(t *testing.T) {
			h := newHost(t)
			h.wired(1)
			h.ip("link set up1 down")
			h.guest("pa", "02:00:00:00:00:0a", "192.0.2.10/24")
			before := map[string]string{"pz": h.settings("pa"), "uz": h.settings("up1")}
			file := h.file("heddle.yaml", config)
			h.start("--config", file)
			h.awaitPort("a", api.Up)
			h.await("u1 is up", func() bool { return h.uplinkState("u1") == api.Up })
			for old, device := range map[string]string{"pz": "pa", "uz": "up1"} {
				if h.settings(device) == before[old] {
					t.Fatalf("nothing was changed on %s: this test is void", device)
				}
			}
			if how != "agent runs" {
				h.kill(syscall.SIGKILL)
			}
			if how == "twice" {
				h.ip("link set pa name px")
				h.ip("link set up1 name ux")
				h.ip("link set px name pz")
				h.ip("link set ux name uz")
			} else {
				h.ip("link set pa name pz")
				h.ip("link set up1 name uz")
			}
			if how == "agent away" {
				h.start("--config", file)
			}
			if h.agent != nil {
				h.awaitPort("a", api.Pending)
				h.await("u1 is pending", func() bool { return h.uplinkState("u1") == api.Pending })
				for device, want := range before {
					h.await(device+" is given back by its release", func() bool { return h.settings(device) == want })
				}
			}
			h.must("down")
			for device, want := range before {
				if got := h.settings(device); got != want {
					t.Errorf("%s is %s, was %s", device, got, want)
				}
			}
		})
	}
}

// The log of a start has each missing device once, and loopback is refused wherever a device can be named.
func TestMissingDevicesAreLoggedOnceAndLoopbackIsRefused(t *testing.T) {
	h := newHost(t)
	const text = "switches:\n  - {name: lab, uplinks: [{name: u1, device: nouplink}], portGroups: [{name: web}]}\n" +
		"ports:\n  - {name: vm1, switch: lab, portGroup: web, device: noport}\n"
	h.start("--config", h.file("heddle.yaml", text))
	h.awaitPort("vm1", api.Pending)
	for _, device := range []string{"nouplink", "noport"} {
		if n := strings.Count(h.log.String(), device); n != 1 {
			t.Errorf("device %s is %d times in the log of the start", device, n)
		}
	}
	const refusal = "--device lo: the loopback device leads to no guest and no network: name another"
	if _, errs, status := h.heddle("port", "connect", "a", "--port-group", "web", "--device", "lo"); status != 2 ||
		!strings.Contains(errs, refusal) {
		t.Errorf("port connect: status %d: %s", status, errs)
	}
	if _, errs, status := h.heddle("host-port", "adopt", "lo", "--port-group", "web"); status == 0 {
		t.Errorf("the loopback device was adopted: %s", errs)
	}
	file := h.file("lo.yaml", strings.ReplaceAll(text, "nouplink", "lo"))
	if _, errs, status := h.heddle("apply", "-f", file); status != 2 || !strings.Contains(errs, ":2:") ||
		!strings.Contains(errs, "device: lo: the loopback device leads to no guest and no network") {
		t.Errorf("apply: status %d: %s", status, errs)
	}
	if advice, _, _ := h.heddle("advise"); !strings.Contains(advice, "Make the device noport, or correct its name.") {
		t.Error(advice)
	}
}
