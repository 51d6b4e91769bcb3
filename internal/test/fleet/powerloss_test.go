package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
	"heddle/internal/test/testkit/clockshift"
	"heddle/internal/test/testkit/realhost"
)

// siteConfig is a host of a site before it has controllers: its own address is on a port of the distributed switch.
const siteConfig = `
switches:
- name: dvs
  uplinks: [{name: uplink1, device: eno2}]
  portGroups:
  - {name: mgmt, vlan: {access: 20}}
  - {name: web, vlan: {access: 10}}
ports:
- {name: vmk0, switch: dvs, portGroup: mgmt, role: host, mac: "02:00:00:00:09:%02[1]x",
   addresses: [10.0.0.%[2]d/24]}
`

// siteText is the same as the controllers' definition, with static ports for the controllers' own VMs.
const siteText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: mgmt, vlan: {access: 20}}
  - {name: control, vlan: {access: 20}, binding: static, ports: {number: 3}}
  - {name: web, vlan: {access: 10}}
templates:
- name: all
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
`

// siteVMs are the controllers' VMs: the third one is on an ephemeral port.
var siteVMs = [3]struct{ device, group string }{{"p-ctl1", "control"}, {"p-ctl2", "control"}, {"p-ctl3", "mgmt"}}

// powered is four hosts whose only network is the distributed switch, and three controllers that are VMs on it.
type powered struct {
	*fleet
	all [3]*realhost.Controller
	// ids are the static ports of the controllers' VMs.
	ids [3]string
}

// newPowered is a site that is up: each controller is a VM on the host of its number.
func newPowered(t *testing.T) *powered {
	t.Helper()
	testkit.Weigh(t, 2)
	s := &powered{fleet: &fleet{t: t, network: testkit.NS(t, "network"), guests: map[string]*cable.End{},
		hosts: make([]*host, 4)}}
	inside(t, s.network, func() error {
		return errors.Join(netlink.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "net"}}), up("net"))
	})
	for n := range s.hosts {
		s.hosts[n] = newHost(t, testkit.NS(t, fmt.Sprintf("host%d", n)))
		s.cable(n)
		s.hosts[n].Start(fmt.Sprintf(siteConfig, n, n+1))
		s.hosts[n].Up("vmk0", "uplink1")
		s.connect(n, 3, "p-web", "web")
	}
	for i := range s.all {
		s.all[i] = realhost.NewController(t, nil, fmt.Sprintf("10.0.0.%d:7411", 101+i))
		s.all[i].Name = fmt.Sprintf("controller%d", i+1)
		s.startsOn(i, i)
		s.hosts[i].must("port", "connect", siteVMs[i].device, "--switch", "dvs", "--port-group", "mgmt", "--device",
			siteVMs[i].device)
		s.all[i].Start()
		if i > 0 {
			s.all[i].Joins(s.all[0])
		}
	}
	s.controller = s.all[0]
	s.controller.Define(siteText)
	for n, h := range s.hosts {
		name := fmt.Sprintf("esx%d", n)
		s.controller.Join(h.Host, name, nil)
		s.inState(name, api.HostOutOfSync)
		h.must("host", "hand-over")
		s.inState(name, api.HostUp)
	}
	for i, vm := range siteVMs {
		s.ids[i] = s.mustStartVM(i, 0x80+i, vm.device, vm.group).PortID
	}
	return s
}

// cable plugs the uplink of a host into the physical network.
func (s *powered) cable(n int) {
	s.t.Helper()
	far := fmt.Sprintf("eno2-%d", n)
	join(s.t, s.hosts[n].NS, "eno2", s.network, far)
	s.plugIn(far)
}

// startsOn makes the machine of a controller's VM on a host, with its address; its port is the caller's.
func (s *powered) startsOn(i, n int) {
	s.t.Helper()
	c, device := s.all[i], siteVMs[i].device
	c.NS = testkit.NS(s.t, device)
	s.guests[fmt.Sprintf("%s@%d", device, n)] = s.hosts[n].PlugInto(c.NS, device, fleetMAC(0x80+i, 0x80))
	host, _, _ := strings.Cut(c.Address, ":")
	s.address(c.NS, "eth0", host+"/24")
}

// powerOff takes the power of the whole site at one instant: nothing is left but what is on disks.
func (s *powered) powerOff() {
	s.t.Helper()
	for _, h := range s.hosts {
		h.Signal(syscall.SIGKILL)
	}
	for _, c := range s.all {
		c.End(syscall.SIGKILL)
	}
	for _, h := range s.hosts {
		h.Ended()
		inside(s.t, h.NS, func() error {
			links, err := netlink.LinkList()
			for _, l := range links {
				if l.Type() != "veth" {
					continue
				}
				// The other end of one that is gone is gone.
				if e := netlink.LinkDel(l); e != nil && !errors.Is(e, unix.ENODEV) {
					err = errors.Join(err, e)
				}
			}
			return err
		})
		realhost.ForgetBoot(s.t, h.Dir, "default")
	}
	s.guests = map[string]*cable.End{}
}

// The power of a whole site is lost: four hosts whose only network is the distributed switch, and the three controllers
// are VMs on it. Guests have their network as soon as their host has booted; then the controllers' VMs start, on other
// hosts than before, and everything comes up by itself. One of the hosts has lost the time, too.
func TestS78_ASiteComesUpAfterItsPowerWasLost(t *testing.T) {
	testkit.Long(t, "boots a site of four hosts and three controllers")
	t.Parallel()
	s := newPowered(t)
	s.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	s.powerOff()

	s.hosts[3].Clock = clockshift.Showing(lost)
	for _, n := range []int{2, 0, 3, 1} {
		s.cable(n)
		s.guest(n, 3, "p-web")
		s.hosts[n].Start("")
		s.hosts[n].Up("vmk0", "uplink1", "p-web")
	}
	s.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	s.reaches("p-web@3", "p-web@2", fleetMAC(3, 3), fleetMAC(2, 3))
	between := s.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))

	for i, vm := range siteVMs {
		on := i + 1
		s.startsOn(i, on)
		p := s.mustStartVM(on, 0x80+i, vm.device, vm.group, "--port-id", s.ids[i])
		if static := s.ids[i] != ""; static != strings.Contains(p.Conflict, "while no controller answered") {
			t.Errorf("%s on another host: conflict %q", vm.device, p.Conflict)
		}
		s.all[i].Launch()
	}
	for i, c := range s.all {
		c.Answers()
		for n := range s.hosts {
			name := fmt.Sprintf("esx%d", n)
			c.Await(name+" is up", func() bool { return c.StateOf(name) == api.HostUp })
		}
		s.conflict(i+1, siteVMs[i].device, "")
		if p := s.port(i+1, siteVMs[i].device); p.PortID != s.ids[i] {
			t.Errorf("%s has port %q, before %q", siteVMs[i].device, p.PortID, s.ids[i])
		}
	}
	s.static("control", "p-ctl1 on esx1 up", "p-ctl2 on esx2 up", "free")
	s.whole("guests, from before the controllers' start", between)

	// It is known on which hosts the controllers are, and said where their majority depends on one.
	s.carried("esx1", "esx2", "esx3")
	s.moves(0, 1, 2)
	s.carried("esx2", "esx2", "esx3")
	s.finds("2 of 3 controllers are VMs on host esx2 (controller1, controller2)")
}

// moves moves the machine of a controller from a host to another.
func (s *powered) moves(i, from, to int) {
	s.t.Helper()
	s.all[i].End(syscall.SIGKILL)
	s.unplug(from, siteVMs[i].device)
	s.startsOn(i, to)
	// its host may have been connected to that controller
	s.mustStartVM(to, 0x80+i, siteVMs[i].device, siteVMs[i].group)
	s.all[i].Start()
	s.conflict(to, siteVMs[i].device, "")
}

// carried awaits that all controllers know on which hosts they are.
func (s *powered) carried(want ...string) {
	s.t.Helper()
	for _, c := range s.all {
		c.Await(fmt.Sprintf("%s knows the controllers on %q", c.Name, want), func() bool {
			st, err := c.Status(s.t.Context())
			if err != nil {
				return false
			}
			var got []string
			for _, at := range st.Controllers {
				got = append(got, at.Host)
			}
			return slices.Equal(got, want)
		})
	}
}

// finds makes sure that a controller's status has a note with that text.
func (s *powered) finds(text string) {
	s.t.Helper()
	st, err := s.all[2].Status(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if !slices.ContainsFunc(st.Findings, func(f api.HealthFinding) bool {
		return f.Level == api.HealthNote && strings.HasPrefix(f.Text, text)
	}) {
		s.t.Errorf("no note %q: %+v", text, st.Findings)
	}
}
