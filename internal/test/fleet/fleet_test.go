package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/api"
	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/realhost"
)

// ownConfig is what each host has by its own file.
const ownConfig = `
switches:
- name: lan
  kind: standard
  uplinks: [{name: uplink1, device: eno1}]
  portGroups: [{name: office}]
ports:
- {name: own1, switch: lan, portGroup: office, device: p-own1, mac: "02:00:00:00:01:%02x"}
- {name: own2, switch: lan, portGroup: office, device: p-own2, mac: "02:00:00:00:02:%02x"}
`

// fleetText is what the controller defines.
const fleetText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: db, vlan: {access: 20}}
  - {name: spare, vlan: {access: 40}}
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
`

// fleet is hosts on a network, each with a management address, and a controller on it.
type fleet struct {
	t          *testing.T
	controller *realhost.Controller
	network    *netns.NS
	hosts      []*host
	guests     map[string]*cable.End
}

// plugs connects devices of a host with a bridge.
func (f *fleet) wire(h *host, n int) {
	f.t.Helper()
	for _, device := range []string{"eno1", "eno2", "mgmt"} {
		far, bridge := fmt.Sprintf("%s-%d", device, n), "net-"+device
		join(f.t, h.NS, device, f.network, far)
		inside(f.t, f.network, func() error { return enslave(far, bridge) })
	}
	f.address(h.NS, "mgmt", fmt.Sprintf("10.0.0.%d/24", n+1))
}

func (f *fleet) address(ns *netns.NS, device, address string) {
	f.t.Helper()
	inside(f.t, ns, func() error {
		l, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		a, err := netlink.ParseAddr(address)
		if err != nil {
			return err
		}
		return netlink.AddrAdd(l, a)
	})
}

func fleetMAC(host, guest int) [6]byte { return [6]byte{2, 0, 0, 0, byte(guest), byte(host)} }

// guest plugs a guest into a host; it is named by its device and its host.
func (f *fleet) guest(n, guest int, device string) {
	f.t.Helper()
	f.guests[fmt.Sprintf("%s@%d", device, n)] = f.hosts[n].Plug(device, fleetMAC(n, guest))
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	return newFleetOf(t, ownConfig, "own1", "own2")
}

// newFleetOf is newFleet with what each host has by its own file, and the ports that it has there.
func newFleetOf(t *testing.T, config string, ports ...string) *fleet {
	t.Helper()
	return newFleetSized(t, 2, config, ports...)
}

// newFleetSized is newFleetOf of so many hosts.
func newFleetSized(t *testing.T, hosts int, config string, ports ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, network: testkit.NS(t, "network"), guests: map[string]*cable.End{}, hosts: make([]*host, hosts)}
	for _, name := range []string{"net-eno1", "net-eno2", "net-mgmt"} {
		inside(t, f.network, func() error {
			return errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: name}}), up(name))
		})
	}
	f.address(f.network, "net-mgmt", "10.0.0.100/24")
	f.controller = realhost.NewController(t, f.network, "10.0.0.100:7411")
	for n := range f.hosts {
		f.hosts[n] = newHost(t, testkit.NS(t, fmt.Sprintf("host%d", n)))
		f.wire(f.hosts[n], n)
		f.guest(n, 1, "p-own1")
		f.guest(n, 2, "p-own2")
		f.hosts[n].Start(fmt.Sprintf(config, n, n))
		f.hosts[n].Up(append(ports, "uplink1")...)
	}
	return f
}

// stream is numbered frames from a guest to another.
func (f *fleet) stream(from, to string, src, dst [6]byte) *cable.Stream {
	f.t.Helper()
	return cable.Start(f.t, f.guests[from], f.guests[to], src, dst)
}

// whole ends a stream of which no frame may be lost.
func (f *fleet) whole(what string, s *cable.Stream) {
	f.t.Helper()
	if sent, received := s.Stop(); sent != received {
		f.t.Errorf("%s: %d of %d frames came", what, received, sent)
	} else {
		f.t.Logf("%s: %d frames, none lost", what, sent)
	}
}

// connect connects a guest's port to a port group of the distributed switch.
func (f *fleet) connect(n, guest int, device, group string) {
	f.t.Helper()
	f.guest(n, guest, device)
	f.hosts[n].must("port", "connect", device, "--switch", "dvs", "--port-group", group, "--device", device)
	f.hosts[n].Up(device)
}

// vlan is the VLAN of a port as it is active on a host.
func (f *fleet) vlan(n int, port string) string {
	f.t.Helper()
	s, err := f.hosts[n].State(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	i := slices.IndexFunc(s.Ports, func(p api.Port) bool { return p.Name == port })
	if i < 0 {
		f.t.Fatalf("host %d has no port %s", n, port)
	}
	return s.Ports[i].VLAN.String()
}

// reaches makes sure that a frame of one guest comes to another.
func (f *fleet) reaches(from, to string, src, dst [6]byte) {
	f.t.Helper()
	frame := cable.Frame(dst, src, 0, "from "+from+" to "+to)
	f.guests[from].Send(frame)
	if !f.guests[to].Await(frame, realhost.Patience) {
		f.t.Errorf("no frame comes from %s to %s", from, to)
	}
}

// A fleet is defined in one place, and each host continues with its last definition while the controller is away: a
// change, a new guest in a port group that is new to its host, a reboot.
func TestS103_AFleetGoesOnWhileItsControllerIsAway(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Start()
	for n, h := range f.hosts {
		f.controller.Join(h.Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
	}
	if out := f.controller.Define(fleetText); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
		f.connect(n, 3, "p-web", "web")
		f.connect(n, 4, "p-db", "db")
	}
	between := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	f.reaches("p-db@0", "p-db@1", fleetMAC(0, 4), fleetMAC(1, 4))

	if out := f.controller.Define(strings.Replace(fleetText, "access: 20", "access: 30", 1)); len(out.Waiting) > 0 {
		t.Errorf("a changed VLAN: %+v", out)
	}
	for n := range f.hosts {
		if got := f.vlan(n, "p-db"); got != "access 30" {
			t.Errorf("host %d has VLAN %s when the change is said to be active", n, got)
		}
	}
	f.reaches("p-db@0", "p-db@1", fleetMAC(0, 4), fleetMAC(1, 4))

	f.controller.End(syscall.SIGKILL)
	for n := range f.hosts {
		f.connect(n, 5, "p-spare", "spare")
	}
	f.reaches("p-spare@1", "p-spare@0", fleetMAC(1, 5), fleetMAC(0, 5))
	f.whole("between the hosts, until the reboot", between)

	f.reboot(1)
	f.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	after := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))

	f.controller.Start()
	for n := range f.hosts {
		name := fmt.Sprintf("esx%d", n)
		f.controller.Await(name+" is up", func() bool { return f.controller.StateOf(name) == api.HostUp })
	}
	f.reported("p-db", "p-spare", "p-web")
	f.whole("between the hosts, after the reboot", after)
	f.whole("on the first host's own switch", carried)
}

// reboot reboots a host while no controller answers: its ports come back from the definition on its disk.
func (f *fleet) reboot(n int) {
	f.t.Helper()
	h := f.hosts[n]
	h.Reboot()
	h.Start("")
	h.Up("own1", "own2", "p-web", "p-db", "p-spare", "uplink1")
	if got := f.vlan(n, "p-db"); got != "access 30" {
		f.t.Errorf("after the reboot the port has VLAN %s", got)
	}
}

// reported makes sure that the controller lists these ports of both hosts.
func (f *fleet) reported(names ...string) {
	f.t.Helper()
	var want []string
	for n := range f.hosts {
		for _, name := range names {
			want = append(want, fmt.Sprintf("esx%d %s up", n, name))
		}
	}
	var got []string
	f.controller.Await("all ports are reported", func() bool {
		list, err := f.controller.Ports(f.t.Context(), api.FleetPortQuery{Switch: "dvs"})
		if err != nil {
			f.t.Fatal(err)
		}
		got = nil
		for _, p := range list {
			got = append(got, fmt.Sprintf("%s %s %s", p.Host, p.Name, p.State))
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}
