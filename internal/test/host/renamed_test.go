package host

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/plan/problem"
	"heddle/internal/test/testkit"
)

const madeDevices = `switches:
  - {name: under, mtu: 1600, portGroups: [{name: web}]}
  - name: lab
    portGroups: [{name: far, overlay: {vni: 5001}}]
    tunnel: {endpoints: [{hostPort: vmk0}]}
ports:
  - {name: vmk0, switch: under, portGroup: web, role: host, addresses: [192.0.2.1/24]}
`

// What somebody does by hand to a device that the agent made is undone, or a problem: status and doctor never say that
// all is well.
func TestS197_ADeviceThatTheAgentMadeIsChangedByHand(t *testing.T) {
	h := newHost(t)
	elsewhere := testkit.NS(t, "elsewhere")
	file := h.file("heddle.yaml", madeDevices)
	h.start("--config", file)
	h.awaitPort("vmk0", api.Up)
	shown := func(device string) string { return run(t, h.ns, "ip -o link show dev "+device) }
	indexes := map[string]string{}
	for _, line := range strings.Split(run(t, h.ns, "ip -o link show"), "\n") {
		if f := strings.FieldsFunc(line, func(c rune) bool { return c == ':' || c == ' ' || c == '@' }); len(f) > 1 {
			indexes[f[1]] = f[0]
		}
	}
	has := func(device string) bool {
		all := "\n" + run(t, h.ns, "ip -o link show")
		return strings.Contains(all, "\n"+indexes[device]+": "+device)
	}
	for _, device := range []string{"vmk0", "sw-vmk0", "vx-lab"} {
		h.ip("link set " + device + " name mine")
		h.await(device+" has its name again", func() bool { return has(device) })
	}
	if got := run(t, h.ns, "ip -o addr show dev vmk0"); !strings.Contains(got, "192.0.2.1/24") {
		t.Errorf("the address is gone:\n%s", got)
	}
	_, mac, _ := strings.Cut(shown("vmk0"), "link/ether ")
	mac, _, _ = strings.Cut(mac, " ")
	h.ip("link set vmk0 address 02:00:00:00:97:01")
	h.await("its MAC again", func() bool { return strings.Contains(shown("vmk0"), mac) })
	h.ip("link set vx-lab down")
	h.await("the tunnel is up again", func() bool { return strings.Contains(shown("vx-lab"), "UP") })
	sound := func(when string) {
		t.Helper()
		h.await(when+": all is well", func() bool { _, _, status := h.heddle("status"); return status == 0 })
	}
	sound("undone")
	h.ip("link set vmk0 down")
	h.awaitCode("vmk0", problem.LinkDown)
	h.ip("link set vmk0 up")
	sound("up again")
	h.renamedWhileItsNameIsTaken(file)
	sound("the name is free")
	h.ip("link set vx-lab netns " + elsewhere.Name)
	h.await("the tunnel is elsewhere", func() bool { _, _, status := h.heddle("status"); return status == 1 })
	if out := h.must("uplink", "show", "tunnel"); !strings.Contains(out, "another network namespace") {
		t.Errorf("it does not say where the device may be:\n%s", out)
	}
	run(t, elsewhere, "ip link set vx-lab netns "+h.ns.Name)
	sound("the tunnel is back")
	h.ip("link set vmk0 netns " + elsewhere.Name)
	h.awaitCode("vmk0", problem.DeviceMoved)
	if _, _, status := h.heddle("status"); status != 1 {
		t.Error("all is well without the interface")
	}
	run(t, elsewhere, "ip link set vmk0 netns "+h.ns.Name)
	h.ip("link set vmk0 up")
	sound("the interface is back")
	h.await("with its address", func() bool {
		return strings.Contains(run(t, h.ns, "ip -o addr show dev vmk0"), "192.0.2.1/24")
	})
	h.ip("link set sw-vmk0 netns " + elsewhere.Name)
	h.awaitCode("vmk0", problem.HostInterface)
	h.ip("link delete vmk0")
	sound("made anew")
}

// renamedWhileItsNameIsTaken has both named by the problem until the name is free.
func (h *host) renamedWhileItsNameIsTaken(file string) {
	h.t.Helper()
	h.kill(syscall.SIGKILL)
	h.ip("link set vmk0 name mine")
	h.ip("link add vmk0 type bridge")
	h.start("--config", file)
	h.awaitCode("vmk0", problem.DeviceRenamed)
	out, _, status := h.heddle("status")
	if status != 1 || !strings.Contains(out, "mine") {
		h.t.Errorf("status %d:\n%s", status, out)
	}
	h.ip("link delete vmk0")
}

func (h *host) awaitCode(port string, want problem.Code) {
	h.t.Helper()
	h.await("port "+port+" says "+string(want), func() bool { return h.port(port).ReasonCode == want })
}
