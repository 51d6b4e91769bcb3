package fleet

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
)

// All controllers that a host knows have other addresses, as they got them while the host was away: joining again,
// with one of the new addresses and no token, is all that it takes. An address where none of them is changes nothing.
func TestS103_AHostIsToldWhereItsControllersAreNow(t *testing.T) {
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	h := f.hosts[0]
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Start()
	f.controller.Join(h.Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Define(fleetText)
	f.inState("esx0", api.HostUp)
	refused := func(why string, join api.Join) {
		t.Helper()
		if _, err := h.Join(t.Context(), join); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("joining again with %+v: %v, want %q", join, err, why)
		}
	}
	refused("leave that first", api.Join{Controller: f.controller.Address})

	h.End(syscall.SIGKILL)
	f.controller.End(syscall.SIGTERM)
	f.address(f.network, "net-mgmt", "10.0.0.101/24")
	const old, now = "10.0.0.100:7411", "10.0.0.101:7411"
	f.controller.Address = now
	f.controller.Start()
	f.define(strings.Replace(fleetText, "access: 10", "access: 11", 1))
	h.Start("")
	h.Await("the host has looked for a controller", func() bool {
		m, err := h.Membership(t.Context())
		return err == nil && m.Connected == "" && m.Error != ""
	})

	refused("finds none of its controllers at "+old, api.Join{Controller: old})
	refused("no address of a controller", api.Join{Controller: "controller1"})
	refused("leave that first", api.Join{Controller: now, Name: "esx7"})
	if m, err := h.Membership(t.Context()); err != nil || len(m.Controllers) != 1 || m.Controllers[0] != old {
		t.Errorf("after what was refused: %+v, %v", m, err)
	}
	f.has("what the command prints", h.must("host", "join", now), "this host is esx0 of cluster")
	f.inState("esx0", api.HostUp)
	h.Await("it knows the controllers as they are", func() bool {
		m, err := h.Membership(t.Context())
		return err == nil && m.Connected == now && len(m.Controllers) == 1 && m.Controllers[0] == now
	})
	f.connect(0, 3, "p-web", "web")
	if got := f.vlan(0, "p-web"); got != "access 11" {
		t.Errorf("the port has VLAN %s", got)
	}
	f.whole("on the host's own switch", carried)
}

// A device that both the host's own file and the definition have stays with the file. Host and controller say so, and
// the guests of the file notice nothing; the definition is active as soon as the device is free.
func TestS103_ADeviceIsOfOneConfiguration(t *testing.T) {
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.inState("esx0", api.HostUp) // a join returns before; "not connected" would be the answer
	out := f.controller.Define(strings.Replace(fleetText, "device: eno2", "device: eno1", 1))
	if len(out.Waiting) != 1 || out.Waiting[0].Host != "esx0" {
		t.Fatalf("a definition with the file's device: %+v", out)
	}
	f.has("why it is not active", strings.Join(out.Waiting[0].Problems, "\n"), "eno1", "uplink1", "lan")
	f.inState("esx0", api.HostOutOfSync)
	if list := f.hosts[0].must("port", "list"); !strings.Contains(list, "own1") || strings.Contains(list, "dvs") {
		t.Errorf("the host's ports are\n%s", list)
	}
	if out := f.controller.Define(fleetText); len(out.Waiting) > 0 {
		t.Errorf("a definition with another device: %+v", out)
	}
	f.inState("esx0", api.HostUp)
	f.whole("on the host's own switch", carried)
}
