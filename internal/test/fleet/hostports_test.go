package fleet

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit/realhost"
)

// hostPortsText is what the controller defines: each host of the rack has a host port with an address from a pool, and
// the second host one with an address of its own.
const hostPortsText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: vmotion, vlan: {access: 50}}
  - {name: storage, vlan: {access: 60}}
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
  hostPorts:
  - {name: vmk1, switch: dvs, portGroup: vmotion, pools: [10.9.0.0/30], mtu: 1400}
hosts:
- name: esx1
  hostPorts:
  - {name: vmk2, switch: dvs, portGroup: storage, addresses: [10.8.0.11/24]}
`

// addresses are those that the device of a host has, without the kernel's own.
func (f *fleet) addresses(n int, device string) (list []string) {
	f.t.Helper()
	inside(f.t, f.hosts[n].NS, func() error {
		i, err := net.InterfaceByName(device)
		if err != nil {
			return nil // there is none
		}
		all, err := i.Addrs()
		for _, a := range all {
			if !strings.HasPrefix(a.String(), "fe80:") {
				list = append(list, a.String())
			}
		}
		return err
	})
	slices.Sort(list)
	return list
}

// talks makes sure that a host reaches an address of another one by TCP.
func (f *fleet) talks(from, to int, address string) {
	f.t.Helper()
	var l net.Listener
	inside(f.t, f.hosts[to].NS, func() (err error) {
		l, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello") // who reads it notices
			_ = c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(f.t.Context(), realhost.Patience)
	defer cancel()
	f.controller.Await(fmt.Sprintf("host %d reaches %s", from, address), func() bool {
		var text []byte
		inside(f.t, f.hosts[from].NS, func() error {
			c, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
			if err == nil {
				text, _ = io.ReadAll(c) // looked at below
				_ = c.Close()
			}
			return nil
		})
		return string(text) == "hello"
	})
}

// hasPort makes sure that the controller and the host say that the host has these addresses by that host port, and that
// its interface has them.
func (f *fleet) hasPort(n int, port string, want ...string) {
	f.t.Helper()
	host := f.host(fmt.Sprintf("esx%d", n))
	m, err := f.hosts[n].Membership(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for who, list := range map[string][]api.DefinedHostPort{"the controller": host.HostPorts, "the host": m.HostPorts} {
		var got []string
		for _, p := range list {
			if p.Name == port {
				got = p.Addresses
			}
		}
		if !slices.Equal(got, want) {
			f.t.Errorf("%s says that %s of %s has %q, want %q", who, port, host.Name, got, want)
		}
	}
	if got := f.addresses(n, port); !slices.Equal(got, want) {
		f.t.Errorf("%s of %s has %q, want %q", port, host.Name, got, want)
	}
}

// Host ports come from the definition: with an address from a pool, which no other host gets and which stays the host's
// over restarts of everything, or with one of their own. Frames of guests are not touched by that.
func TestHostPorts_HostsHaveThoseOfTheDefinition(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.controller.Start()
	f.controller.Define(hostPortsText)
	for n := range f.hosts {
		f.controller.Join(f.hosts[n].Host, fmt.Sprintf("esx%d", n), map[string]string{"rack": "a"})
		f.hosts[n].Up("uplink1", "vmk1")
	}
	f.hosts[1].Up("vmk2")
	f.hasPort(0, "vmk1", "10.9.0.1/30")
	f.hasPort(1, "vmk1", "10.9.0.2/30")
	f.hasPort(1, "vmk2", "10.8.0.11/24")
	f.hasPort(0, "vmk2")
	f.talks(0, 1, "10.9.0.2")

	// The pool is exhausted: another host is told so, and its token stays good.
	token, err := f.controller.JoinToken(t.Context(), api.JoinTerms{Labels: map[string]string{"rack": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	third := newHost(t, f.network)
	third.Start("")
	join := api.Join{Controller: f.controller.Address, Token: token.Token, Name: "esx2"}
	const full = "pool 10.9.0.0/30 has no free address for host port vmk1 of host esx2"
	if _, err := third.Join(t.Context(), join); err == nil || !strings.Contains(err.Error(), full) {
		t.Errorf("a host joined that there is no address for: %v", err)
	}

	for n := range f.hosts {
		f.connect(n, 3, "p-web", "web")
	}
	f.reaches("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))
	guests := f.stream("p-web@0", "p-web@1", fleetMAC(0, 3), fleetMAC(1, 3))

	larger := strings.NewReplacer("10.9.0.0/30", "10.9.0.0/24", "10.8.0.11", "10.8.0.12").Replace(hostPortsText)
	out, err := f.controller.Defines(api.Define{File: "fleet.yaml", Content: larger, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range out.HostPorts {
		lines = append(lines, fmt.Sprintf("%s/%s %s %v was %v", p.Host, p.Name, p.Change, p.Addresses, p.Before))
	}
	if want := []string{"esx0/vmk1 changed [10.9.0.1/24] was [10.9.0.1/30]",
		"esx1/vmk1 changed [10.9.0.2/24] was [10.9.0.2/30]",
		"esx1/vmk2 changed [10.8.0.12/24] was [10.8.0.11/24]"}; !slices.
		Equal(lines, want) {
		t.Errorf("a dry run says %q, want %q", lines, want)
	}
	if len(out.AtRisk) != 2 {
		t.Errorf("at risk are %+v", out.AtRisk)
	}
	if out := f.controller.Define(larger); len(out.Waiting) > 0 {
		t.Errorf("not active: %+v", out.Waiting)
	}
	f.hasPort(0, "vmk1", "10.9.0.1/24")
	f.hasPort(1, "vmk1", "10.9.0.2/24")
	f.hasPort(1, "vmk2", "10.8.0.12/24")
	f.talks(1, 0, "10.9.0.1")

	if _, err := third.Join(t.Context(), join); err != nil {
		t.Fatal(err)
	}
	f.controller.Await("the third host has an address", func() bool {
		return len(f.host("esx2").HostPorts) == 1 && slices.Equal(f.host("esx2").HostPorts[0].Addresses,
			[]string{"10.9.0.3/24"})
	})

	// Another port group for one host: the others notice nothing, and the address stays.
	f.controller.End(syscall.SIGKILL)
	f.controller.Start()
	for _, name := range []string{"esx0", "esx1"} {
		f.inState(name, api.HostUp)
	}
	moved := strings.Replace(larger, "portGroup: vmotion, pools", "portGroup: storage, pools", 1)
	if out := f.controller.Define(moved); len(out.Hosts) != 3 {
		t.Errorf("concerned are %q", out.Hosts)
	}
	f.hasPort(0, "vmk1", "10.9.0.1/24")
	f.hasPort(1, "vmk1", "10.9.0.2/24")
	if p := f.port(0, "vmk1"); p.PortGroup != "storage" {
		t.Errorf("the host port is in port group %s", p.PortGroup)
	}
	f.talks(0, 1, "10.9.0.2")
	f.whole("between guests of the hosts", guests)
}
