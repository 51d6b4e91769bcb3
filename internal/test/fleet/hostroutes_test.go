package fleet

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// routedConfig is a host whose way to its controller is a router behind its own distributed switch.
const routedConfig = `
switches:
- name: dvs
  uplinks: [{name: uplink1, device: eno2}]
  portGroups: [{name: mgmt}, {name: web, vlan: {access: 10}}]
ports:
- {name: vmk0, switch: dvs, portGroup: mgmt, role: host, mac: "02:00:00:00:09:%02[1]x",
   addresses: [10.0.0.%[2]d/24], gateway: 10.0.0.100}
- {name: web1, switch: dvs, portGroup: web, device: p-web, mac: "02:00:00:00:03:%02[1]x"}
`

// routedText is the same as the controllers' definition.
const routedText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups: [{name: mgmt}, {name: web, vlan: {access: 10}}]
templates:
- name: all
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
hosts:
- name: esx0
  hostPorts:
  - {name: vmk0, switch: dvs, portGroup: mgmt, mac: "02:00:00:00:09:00", addresses: [10.0.0.1/24], gateway: 10.0.0.100}
- name: esx1
  hostPorts:
  - {name: vmk0, switch: dvs, portGroup: mgmt, mac: "02:00:00:00:09:01", addresses: [10.0.0.2/24], gateway: 10.0.0.100}
`

// newRoutedFleet is two hosts whose controller is behind a router, with the host ports of the definition.
func newRoutedFleet(t *testing.T) *fleet {
	t.Helper()
	testkit.Tool(t, "ip")
	f := &fleet{t: t, network: testkit.NS(t, "network"), guests: map[string]*cable.End{}, hosts: make([]*host, 2)}
	inside(t, f.network, func() error {
		return errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "net"}}), up("net"))
	})
	f.address(f.network, "net", "10.0.0.100/24")
	f.address(f.network, "lo", "10.77.0.100/32")
	f.controller = realhost.NewController(t, f.network, "10.77.0.100:7411")
	f.controller.Start()
	f.controller.Define(routedText)
	for n := range f.hosts {
		f.hosts[n] = newHost(t, testkit.NS(t, fmt.Sprintf("host%d", n)))
		join(t, f.hosts[n].NS, "eno2", f.network, fmt.Sprintf("eno2-%d", n))
		f.plugIn(fmt.Sprintf("eno2-%d", n))
		f.guest(n, 3, "p-web")
		f.hosts[n].Start(fmt.Sprintf(routedConfig, n, n+1))
		f.hosts[n].Up("vmk0", "web1", "uplink1")
		name := fmt.Sprintf("esx%d", n)
		f.controller.Join(f.hosts[n].Host, name, nil)
		f.inState(name, api.HostOutOfSync)
		f.hosts[n].must("host", "hand-over")
		f.inState(name, api.HostUp)
	}
	return f
}

// routes are the default routes of a host, of a table.
func (f *fleet) routes(n int, table string) string {
	f.t.Helper()
	out, err := f.hosts[n].NS.Output("ip", "route", "show", "default", "table", table)
	if err != nil {
		f.t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// A change of a host port of the definition that cuts its host off goes back by itself, whatever of the port it is; the
// host is back at its controller, and no guest notices. The right change follows.
func TestS81_AHostPortOfTheDefinitionThatCutsItsHostOffGoesBack(t *testing.T) {
	testkit.Long(t, "waits for trials of each change that cuts a host off; adopttest has it by the host's own file")
	const one = "portGroup: mgmt, mac: \"02:00:00:00:09:00\", addresses: [10.0.0.1/24], gateway: 10.0.0.100"
	for name, wrong := range map[string]string{
		"a wrong gateway": strings.Replace(one, "gateway: 10.0.0.100", "gateway: 10.0.0.77", 1),
		"another network": strings.NewReplacer("10.0.0.1/24", "10.5.0.1/24", "10.0.0.100", "10.5.0.100").Replace(one),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRoutedFleet(t)
			const right = "default via 10.0.0.100 dev vmk0 proto 72"
			if got := f.routes(0, "main"); got != right {
				t.Errorf("the host's route is %q", got)
			}
			between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
			revision := f.define(strings.Replace(routedText, one, wrong, 1))
			f.inState("esx0", api.HostReverted)
			f.has("what the controller says of the host", strings.Join(f.host("esx0").Problems, "\n"),
				fmt.Sprintf("revision %d cut it off", revision), "no controller answered")
			if got, has := f.routes(0, "main"), f.addresses(0, "vmk0"); got != right || len(has) != 1 ||
				has[0] != "10.0.0.1/24" {
				t.Errorf("after the host went back its route is %q, its addresses are %q", got, has)
			}
			f.inState("esx1", api.HostUp)

			other := strings.Replace(one, "gateway: 10.0.0.100", "gateway: 10.0.0.100, metric: 90", 1)
			if out := f.controller.Define(strings.Replace(routedText, one, other, 1)); len(out.Waiting) > 0 {
				t.Errorf("the change that follows: %+v", out)
			}
			if got := f.routes(0, "main"); got != right+" metric 90" {
				t.Errorf("the host's route is %q", got)
			}
			f.whole("between the hosts", between)
		})
	}
}
