package host

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/diagnose/doctor"
	"heddle/internal/test/testkit"
)

// Addresses and routes that an operator or a DHCP client put on a host port stay through any apply, also where the
// port's own address was the first of their subnet; the port's own go with the line that asks for them.
func TestAddressesAndRoutesOfOthersStayOnAHostPort(t *testing.T) {
	testkit.Long(t, "applies many files; TestHostInterfaceHasWhatTheFileSays has a host port")
	h := newHost(t)
	const config = "switches: [{name: lab, portGroups: [{name: web}]}]\nports:\n  - {name: vmk0, switch: lab, " +
		"portGroup: web, role: host, addresses: [192.0.2.1/24]}\n"
	file := h.file("heddle.yaml", config)
	h.start("--config", file)
	h.awaitPort("vmk0", api.Up)
	for _, command := range []string{"addr add 192.0.2.50/24 dev vmk0 valid_lft 4000 preferred_lft 3000",
		"addr add 198.51.100.9/25 dev vmk0", "addr add 2001:db8:9::9/64 dev vmk0 nodad",
		"route add 203.0.113.0/24 via 192.0.2.254 dev vmk0", "route add default via 198.51.100.1 dev vmk0 metric 77"} {
		h.ip(command)
	}
	theirs := func(when string) {
		t.Helper()
		addresses, routes := run(t, h.ns, "ip -o addr show dev vmk0"), run(t, h.ns, "ip route show dev vmk0")
		for _, want := range []string{"192.0.2.50/24", "198.51.100.9/25", "2001:db8:9::9/64"} {
			if !strings.Contains(addresses, want) {
				t.Errorf("%s: address %s is gone:\n%s", when, want, addresses)
			}
		}
		for _, want := range []string{"203.0.113.0/24 via 192.0.2.254", "default via 198.51.100.1 metric 77"} {
			if !strings.Contains(routes, want) {
				t.Errorf("%s: route %s is gone:\n%s", when, want, routes)
			}
		}
	}
	has := func(when, address string, want bool) {
		t.Helper()
		if got := run(t, h.ns, "ip -o addr show dev vmk0"); strings.Contains(got, address) != want {
			t.Errorf("%s: address %s there is not %v:\n%s", when, address, want, got)
		}
	}
	apply := func(content string) { t.Helper(); h.must("apply", "-f", h.file("next.yaml", content)) }
	apply(config + "  - {name: other, switch: lab, portGroup: web, device: pz}\n")
	theirs("another port was added")
	h.kill(syscall.SIGKILL)
	h.start("--config", file)
	theirs("after a restart")
	apply(strings.Replace(config, "192.0.2.1/24", "192.0.2.7/24, 2001:db8::1/64", 1))
	theirs("its own address is another")
	has("its own address is another", "192.0.2.1/24", false)
	has("its own address is another", "192.0.2.7/24", true)
	if !strings.Contains(h.log.String(), "address=192.0.2.1/24") {
		t.Error("the log does not say that an address went")
	}
	apply(strings.Replace(config, "name: vmk0", "name: mgmt, device: vmk0", 1))
	theirs("the port has another name")
	has("the port has another name", "192.0.2.7/24", false)
	apply(strings.Replace(config, ", addresses: [192.0.2.1/24]", "", 1))
	theirs("it asks for none")
	has("it asks for none", "192.0.2.1/24", false)
	if got := strings.TrimSpace(
		run(t, h.ns, "cat /proc/sys/net/ipv4/conf/vmk0/promote_secondaries")); got != strings.TrimSpace(
		run(t, h.ns, "cat /proc/sys/net/ipv4/conf/default/promote_secondaries")) {
		t.Errorf("promote_secondaries of vmk0 is %s", got)
	}
}

// Anybody can set an alias; lo stands for a card that cannot be removed. Such a device keeps no agent from starting,
// and is not removed.
func TestForeignDevicesWithOurAliasAreLeftAlone(t *testing.T) {
	h := newHost(t)
	for _, command := range []string{"link set lo alias heddle/" + h.name + "/bar/evil",
		"link add sw-x type veth peer name x", "link set sw-x alias heddle/" + h.name + "/lab/x"} {
		h.ip(command)
	}
	before := snapshot(t, h.ns)
	file := h.file("heddle.yaml", "switches: [{name: lab, portGroups: [{name: web}]}]\nports:\n  - {name: vmk0, "+
		"switch: lab, portGroup: web, role: host}\n")
	h.start("--config", file)
	h.awaitPort("vmk0", api.Up)
	what := "device lo has the alias heddle/" + h.name + "/bar/evil and was not made by this agent"
	if n := strings.Count(h.log.String(), what); n != 1 {
		t.Errorf("the log says it %d times", n)
	}
	if found, status := h.examine(file); status != 0 || !hasFinding(found, "aliases", doctor.Note, what) {
		t.Errorf("doctor: status %d, %+v", status, found)
	}
	if !strings.Contains(run(t, h.ns, "ip -o link"), "sw-x@x") {
		t.Error("a foreign veth was removed")
	}
	_, errs, status := h.heddle("down")
	if status != 0 || !strings.Contains(errs, what) {
		t.Errorf("down: status %d, %s", status, errs)
	}
	if after := snapshot(t, h.ns); after != before {
		t.Errorf("not as before:\n%s\n%s", before, after)
	}
}

// The devices of an agent are in its network namespace, wherever doctor is asked.
func TestDoctorLooksIntoTheAgentsNamespace(t *testing.T) {
	h, file, _, _ := twoVMs(t)
	h.ip("link set lo up")
	home, elsewhere := h.ns, testkit.NS(t, "elsewhere")
	ask := func() (found []doctor.Finding, status int) {
		t.Helper()
		h.ns = elsewhere
		defer func() { h.ns = home }()
		out, errs, status := h.heddle("doctor", "--config", file, "-o", "json")
		if err := json.Unmarshal([]byte(out), &found); err != nil {
			t.Fatalf("%v\n%s%s", err, out, errs)
		}
		return found, status
	}
	sound := func(when string) {
		t.Helper()
		found, _ := ask()
		said := false
		for _, f := range found {
			said = said || f.Check == "namespace" && f.Level == doctor.OK &&
				strings.Contains(f.Text, "in the agent's, ")
			if strings.Contains(f.Text, "there is no device") || f.Check == "ports" && f.Level != doctor.OK {
				t.Errorf("%s: %+v", when, f)
			}
		}
		if !said {
			t.Errorf("%s: it does not say where it looked: %+v", when, found)
		}
	}
	if _, status := ask(); status != 0 {
		t.Errorf("a sound host, looked at from outside: status %d", status)
	}
	sound("agent runs")
	h.ip("link set pa mtu 1400")
	if found, _ := ask(); !hasFinding(found, "mtu", doctor.Note, "pa has MTU 1400") {
		t.Errorf("not found from outside: %+v", found)
	}
	h.ip("link set pa mtu 1500")
	h.kill(syscall.SIGKILL)
	sound("agent away")
}

// The switch's end of a host port serves on under another name, and goes with the agent.
func TestARenamedSwitchEndServesOn(t *testing.T) {
	h, file, a, _ := twoVMs(t)
	h.must("port", "connect", "vmk0", "--port-group", "web", "--role", "host", "--address", "192.0.2.1/24")
	h.awaitPort("vmk0", api.Up)
	h.ip("link set sw-vmk0 name foo")
	for _, restart := range []bool{false, true} {
		if restart {
			h.kill(syscall.SIGKILL)
			h.start("--config", file)
		}
		h.must("apply", "-f", file) // which binds all devices once more
		h.awaitPort("vmk0", api.Up)
		if !pings(a, "192.0.2.1") {
			t.Errorf("restarted %v: no traffic", restart)
		}
	}
	h.kill(syscall.SIGKILL)
	h.must("down")
	if left := run(t, h.ns, "ip -o link"); strings.Contains(left, "vmk0") || strings.Contains(left, "foo") {
		t.Errorf("left:\n%s", left)
	}
}
