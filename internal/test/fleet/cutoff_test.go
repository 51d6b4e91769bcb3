package fleet

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// throughConfig is a host that reaches everything by its distributed switch, its own address on a host port.
const throughConfig = `
switches:
- name: dvs
  uplinks: [{name: uplink1, device: eno2}, {name: uplink2, device: eno3}]
  defaults: {teaming: {active: [uplink1]}}
  portGroups:
  - {name: mgmt0}
  - {name: mgmt1}
  - {name: web, vlan: {access: 10}}
ports:
- {name: vmk0, switch: dvs, portGroup: mgmt%[1]d, role: host, mac: "02:00:00:00:09:%02[1]x",
   addresses: [10.0.0.%[2]d/24]}
- {name: web1, switch: dvs, portGroup: web, device: p-web, mac: "02:00:00:00:03:%02[1]x"}
`

// throughText is the same as the controllers' definition.
const throughText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}, {name: uplink2}]
  defaults: {teaming: {active: [uplink1]}}
  portGroups:
  - {name: mgmt0}
  - {name: mgmt1}
  - {name: web, vlan: {access: 10}}
templates:
- name: all
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}, {name: uplink2, device: eno3}]}]
`

// cutOff is throughText with a VLAN that cuts the first host off.
var cutOff = strings.Replace(throughText, "{name: mgmt0}", "{name: mgmt0, vlan: {access: 66}}", 1)

// unplugged is throughText with an uplink that leads nowhere.
var unplugged = strings.Replace(throughText, "{name: mgmt0}", "{name: mgmt0, teaming: {active: [uplink2]}}", 1)

// newFleetThrough is two hosts that reach their controller by the switch that it defines.
func newFleetThrough(t *testing.T) *fleet {
	t.Helper()
	f := &fleet{t: t, network: testkit.NS(t, "network"), guests: map[string]*cable.End{},
		hosts: make([]*host, 2)}
	inside(t, f.network, func() error {
		return errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "net"}}), up("net"))
	})
	// Linux answers ARP for its addresses on all devices: a cable that leads to no switch would reach the controller.
	inside(t, f.network, func() error {
		return os.WriteFile("/proc/sys/net/ipv4/conf/all/arp_ignore", []byte("1"), 0)
	})
	f.address(f.network, "net", "10.0.0.100/24")
	f.controller = realhost.NewController(t, f.network, "10.0.0.100:7411")
	f.controller.Start()
	for n := range f.hosts {
		f.hosts[n] = newHost(t, testkit.NS(t, fmt.Sprintf("host%d", n)))
		for _, device := range []string{"eno2", "eno3"} {
			join(t, f.hosts[n].NS, device, f.network, fmt.Sprintf("%s-%d", device, n))
		}
		f.plugIn(fmt.Sprintf("eno2-%d", n))
		f.guest(n, 3, "p-web")
		f.hosts[n].Start(fmt.Sprintf(throughConfig, n, n+1))
		f.hosts[n].Up("vmk0", "web1", "uplink1")
	}
	f.controller.Define(throughText)
	for n, h := range f.hosts {
		name := fmt.Sprintf("esx%d", n)
		f.controller.Join(h.Host, name, nil)
		f.inState(name, api.HostOutOfSync)
		h.must("host", "hand-over")
		f.inState(name, api.HostUp)
	}
	return f
}

// plugIn connects the far end of a host's device with the network.
func (f *fleet) plugIn(far string) {
	f.t.Helper()
	inside(f.t, f.network, func() error { return enslave(far, "net") })
}

// inState waits until a host is in that state.
func (f *fleet) inState(name string, want api.HostState) {
	f.t.Helper()
	f.controller.Await(fmt.Sprintf("%s is %s", name, want), func() bool { return f.controller.StateOf(name) == want })
}

// host is what the controller lists of a host.
func (f *fleet) host(name string) api.FleetHost {
	f.t.Helper()
	list, err := f.controller.Hosts(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, h := range list.Hosts {
		if h.Name == name {
			return h
		}
	}
	f.t.Fatalf("there is no host %s", name)
	return api.FleetHost{}
}

// define changes the definition without waiting for the hosts, and gives its revision.
func (f *fleet) define(text string) int64 {
	f.t.Helper()
	out, err := f.controller.Defines(api.Define{File: "fleet.yaml", Content: text})
	if err != nil {
		f.t.Fatal(err)
	}
	return out.Revision
}

// wentBack counts the changes that a host took back.
func (h *host) wentBack() (n int) {
	h.T.Helper()
	err := h.Events(h.T.Context(), api.Follow{Last: -1, NoFollow: true}, func(b api.Events) error {
		for _, e := range b.Events {
			if e.Kind == event.Reverted {
				n++
			}
		}
		return nil
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return n
}

// A wrong VLAN for the host port by which a host reaches its controller cuts it off: it goes back by itself, whatever
// happens to its agent meanwhile, and no guest notices.
func TestS81_AHostThatADefinitionCutsOffGoesBack(t *testing.T) {
	testkit.Long(t, "waits for trials of a version that cuts a host off; adopttest has it by the host's own file")
	for name, c := range map[string]struct {
		meanwhile func(*host)
		loses     bool // frames, with the host's switch
	}{
		"undisturbed":          {func(*host) {}, false},
		"the agent is killed":  {func(h *host) { h.End(syscall.SIGKILL); h.Start("") }, false},
		"the host is rebooted": {func(h *host) { h.Reboot(); h.Start("") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleetThrough(t)
			between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
			revision := f.define(cutOff)
			f.hosts[0].Await("the host is cut off", func() bool { return f.vlan(0, "vmk0") == "access 66" })
			c.meanwhile(f.hosts[0])
			f.inState("esx0", api.HostReverted)
			f.isBack(revision)
			if c.loses {
				between.Stop()
				f.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
				return
			}
			f.whole("between the hosts", between)
		})
	}
}

// A version from which a host went back is not sent to it again until somebody wants that, or changes it.
func TestS81_ARevertedVersionIsTriedAgainWhenItIsForcedOrChanged(t *testing.T) {
	testkit.Long(t, "waits for several trials of a version that cuts a host off")
	t.Parallel()
	f := newFleetThrough(t)
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	if _, err := f.controller.RetryHost(t.Context(), "esx0"); err == nil ||
		!strings.Contains(err.Error(), "has not gone back") {
		t.Errorf("a host that is up tries again: %v", err)
	}
	revision := f.define(unplugged)
	f.inState("esx0", api.HostReverted)
	f.hosts[0].End(syscall.SIGTERM)
	f.controller.Await("it has gone", func() bool { return f.controller.StateOf("esx0") == api.HostDisconnected })
	f.hosts[0].Start("")
	f.inState("esx0", api.HostReverted)
	f.isBack(revision)
	f.whole("while the host went back", between)
	if n := f.hosts[0].wentBack(); n != 0 { // events are those of the agent that runs
		t.Errorf("the host was sent it again, and went back %d times", n)
	}

	// Somebody has the host try again, and plugs the cable in.
	if got, err := f.controller.RetryHost(t.Context(), "esx0"); err != nil || got != revision {
		t.Errorf("to try revision %d again: %d, %v", revision, got, err)
	}
	f.hosts[0].Await("the host tries again", func() bool { return f.hosts[0].tries() })
	f.plugIn("eno3-0")
	f.inState("esx0", api.HostUp)
	f.hosts[0].Await("it is decided", func() bool { return !f.hosts[0].tries() })
	if n, state := f.hosts[0].wentBack(), f.controller.StateOf("esx0"); n != 0 || state != api.HostUp {
		t.Errorf("the host went back %d times, and is %s", n, state)
	}

	between = f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	f.define(strings.Replace(unplugged, "{name: mgmt0,", "{name: mgmt0, vlan: {access: 66},", 1))
	f.inState("esx0", api.HostReverted)
	f.define(unplugged)
	f.inState("esx0", api.HostUp)
	f.whole("while the host went back from another", between)
}

// tries reports whether the host tries a change.
func (h *host) tries() bool {
	h.T.Helper()
	p, err := h.Progress(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	return p.Trial != nil
}

// isBack makes sure that the first host has gone back from a revision, and the second has it.
func (f *fleet) isBack(from int64) {
	f.t.Helper()
	if got := f.vlan(0, "vmk0"); got != "none" {
		f.t.Errorf("the host port has VLAN %s after the host went back", got)
	}
	why := strings.Join(f.host("esx0").Problems, "\n")
	for _, part := range []string{fmt.Sprintf("revision %d cut it off", from), "no controller answered",
		"heddle host retry esx0"} {
		if !strings.Contains(why, part) {
			f.t.Errorf("the controller says %q, without %q", why, part)
		}
	}
	f.inState("esx1", api.HostUp)
	if got := f.host("esx1"); got.Revision != from {
		f.t.Errorf("the other host: %+v, want revision %d", got, from)
	}
	if n := f.hosts[1].wentBack(); n != 0 {
		f.t.Errorf("the other host took back %d changes", n)
	}
}
