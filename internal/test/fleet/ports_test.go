package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
)

// portsText is what the controller defines: port groups with static ports, and one for hosts of a rack alone.
const portsText = `
switches:
- name: dvs
  uplinks: [{name: uplink1}]
  portGroups:
  - {name: web, vlan: {access: 10}}
  - {name: fixed, vlan: {access: 20}, binding: static, ports: {number: 2}}
  - {name: grows, vlan: {access: 30}, binding: elastic, ports: {number: 1, limit: 10}}
  - {name: vault, vlan: {access: 40}, binding: static, ports: {number: 2}, labels: {zone: vault}}
templates:
- name: all
  labels: {rack: a}
  switches: [{name: dvs, uplinks: [{name: uplink1, device: eno2}]}]
`

// uuid is that of a VM.
func uuid(n int) string { return fmt.Sprintf("6f9619ff-8b86-d011-b42d-00c04fc964%02x", n) }

// newPortFleet is two hosts of a cluster with portsText; the second one is in the vault.
func newPortFleet(t *testing.T) *fleet {
	t.Helper()
	f := newFleet(t)
	f.controller.Start()
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.controller.Join(f.hosts[1].Host, "esx1", map[string]string{"rack": "a", "zone": "vault"})
	if out := f.controller.Define(portsText); len(out.Hosts) != 2 || len(out.Waiting) > 0 {
		t.Fatalf("the definition: %+v", out)
	}
	for n := range f.hosts {
		f.hosts[n].Up("uplink1")
	}
	return f
}

// startVM connects an adapter of a VM on a host, as the hook of a VM manager does.
func (f *fleet) startVM(n, vm int, device, group string, more ...string) error {
	f.t.Helper()
	if _, ok := f.guests[fmt.Sprintf("%s@%d", device, n)]; !ok {
		f.guest(n, vm, device)
	}
	return f.hosts[n].Heddle(append([]string{"port", "connect", device, "--replace", "--switch", "dvs", "--port-group",
		group, "--device", device, "--vm-uuid", uuid(vm), "--adapter", "net0"}, more...)...)
}

// mustStartVM is startVM of what works, and gives the port.
func (f *fleet) mustStartVM(n, vm int, device, group string, more ...string) api.Port {
	f.t.Helper()
	if err := f.startVM(n, vm, device, group, more...); err != nil {
		f.t.Fatal(err)
	}
	f.hosts[n].Up(device)
	return f.port(n, device)
}

// port is a port as its host shows it.
func (f *fleet) port(n int, name string) api.Port {
	f.t.Helper()
	s, err := f.hosts[n].State(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	i := slices.IndexFunc(s.Ports, func(p api.Port) bool { return p.Name == name })
	if i < 0 {
		f.t.Fatalf("host %d has no port %s", n, name)
	}
	return s.Ports[i]
}

// received is how many frames a port of a host has received from its guest.
func (f *fleet) received(n int, name string) uint64 {
	f.t.Helper()
	all, err := f.hosts[n].Stats(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, s := range all {
		for _, c := range s.Counters {
			if s.Name == name && c.Name == "packetsInUnicast" {
				return c.Value
			}
		}
	}
	f.t.Fatalf("host %d has no counters of %s", n, name)
	return 0
}

// A static port stays its adapter's while the VM is off: number, MAC and counters. A fixed port group that is full
// refuses another adapter, an elastic one grows.
func TestS77_AStaticPortIsItsAdaptersUntilItIsReleased(t *testing.T) {
	t.Parallel()
	f := newPortFleet(t)
	first := f.mustStartVM(0, 3, "p-a", "fixed")
	other := f.mustStartVM(1, 4, "p-b", "fixed")
	if first.PortID == "" || other.PortID == "" || first.PortID == other.PortID || first.Conflict != "" {
		t.Fatalf("the ports %q and %q", first.PortID, other.PortID)
	}
	f.reaches("p-a@0", "p-b@1", fleetMAC(0, 3), fleetMAC(1, 4))
	before := f.received(0, "p-a")
	if before == 0 {
		t.Error("no frame was counted")
	}

	err := f.startVM(0, 5, "p-c", "fixed")
	if err == nil || !strings.Contains(err.Error(), "port group dvs/fixed has no free port: all 2 are bound") {
		t.Errorf("a third adapter in a port group of two ports: %v", err)
	}

	f.hosts[0].must("port", "disconnect", "p-a")
	if err := f.startVM(0, 5, "p-c", "fixed"); err == nil {
		t.Error("the port of a VM that is off was given away")
	}

	again := f.mustStartVM(0, 3, "p-a", "fixed")
	if again.PortID != first.PortID || again.MAC != first.MAC {
		t.Errorf("after it was off the adapter has port %s and MAC %s, before %s and %s", again.PortID, again.MAC,
			first.PortID, first.MAC)
	}
	if got := f.received(0, "p-a"); got < before {
		t.Errorf("after it was off the port has counted %d frames, before %d", got, before)
	}

	f.hosts[0].must("port", "disconnect", "p-a", "--release")
	if p := f.mustStartVM(0, 5, "p-c", "fixed"); p.PortID != first.PortID {
		t.Errorf("the adapter has port %s, released was %s", p.PortID, first.PortID)
	}
	for vm := 6; vm < 9; vm++ {
		f.mustStartVM(vm%2, vm, fmt.Sprintf("p-%d", vm), "grows")
	}
	f.static("fixed", "p-c on esx0 up", "p-b on esx1 up")
	f.static("grows", "p-6 on esx0 up", "p-7 on esx1 up", "p-8 on esx0 up", "free", "free", "free", "free", "free",
		"free")

	for text, want := range map[string]string{
		strings.Replace(portsText, "number: 2", "number: 1",
			1): "has 2 ports that are bound",
		strings.Replace(portsText, "binding: static, ports: {number: 2}", "blocked: false",
			1): "are bound: release them",
	} {
		_, err := f.controller.Defines(api.Define{File: "fleet.yaml", Content: text})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a definition without places for ports that are bound: %v", err)
		}
	}
	f.anotherOfOneName()
	f.hosts[1].must("port", "disconnect", "p-b")
	f.static("fixed", "p-c on esx0 up", "bound on esx1")
	if _, err := f.controller.ReleasePort(f.t.Context(), api.ReleaseStatic{Port: first.PortID}); err == nil ||
		!strings.Contains(err.Error(), "is in use on host esx0") {
		t.Errorf("the release of a port in use: %v", err)
	}
	if _, err := f.controller.ReleasePort(f.t.Context(), api.ReleaseStatic{Port: other.PortID}); err != nil {
		t.Error(err)
	}
	f.static("fixed", "p-c on esx0 up", "free")
}

// anotherOfOneName has another VM come under the name of one that is off, as one that is made anew does: each has a
// port of its own.
func (f *fleet) anotherOfOneName() {
	f.t.Helper()
	off := f.port(0, "p-8")
	f.hosts[0].must("port", "disconnect", "p-8")
	if p := f.mustStartVM(0, 9, "p-8", "grows"); p.VM != uuid(9) || p.PortID == off.PortID {
		f.t.Errorf("the port of another VM is %s of VM %s, that of the one before was %s of VM %s", p.PortID, p.VM,
			off.PortID, off.VM)
	}
	f.static("grows", "p-6 on esx0 up", "p-7 on esx1 up", "bound on esx0", "p-8 on esx0 up", "free", "free", "free",
		"free", "free")
	f.hosts[0].must("port", "disconnect", "p-8", "--release")
	f.static("grows", "p-6 on esx0 up", "p-7 on esx1 up", "bound on esx0", "free", "free", "free", "free", "free",
		"free")
	if _, err := f.controller.ReleasePort(f.t.Context(), api.ReleaseStatic{Port: off.PortID}); err != nil {
		f.t.Errorf("the release of the port of a VM that is off: %v", err)
	}
}

// What is set on a static port by itself ends with its guest's connection, as on any other port, unless the port group
// keeps it. The port stays the adapter's.
func TestS10_AStaticPortsOwnSettingsEndWithItsConnection(t *testing.T) {
	testkit.Long(t, "the package host has ports whose own settings end")
	t.Parallel()
	f := newPortFleet(t)
	first := f.mustStartVM(0, 3, "p-a", "fixed")
	for _, keeps := range []bool{false, true} {
		if keeps {
			f.controller.Define(strings.Replace(portsText, "{name: fixed,",
				"{name: fixed, overrides: {resetAtDisconnect: false},", 1))
		}
		f.hosts[0].must("port", "block", "p-a")
		f.hosts[0].must("port", "disconnect", "p-a")
		if err := f.startVM(0, 3, "p-a", "fixed"); err != nil {
			t.Fatal(err)
		}
		p := f.port(0, "p-a")
		if blocked := p.State == api.Blocked; blocked != keeps || p.PortID != first.PortID {
			t.Errorf("with settings kept (%v) the port %s is %s", keeps, p.PortID, p.State)
		}
	}
}

// static awaits that the controller lists these static ports of a port group.
func (f *fleet) static(group string, want ...string) {
	f.t.Helper()
	slices.Sort(want)
	var got []string
	f.controller.Await(fmt.Sprintf("%s has %q", group, want), func() bool {
		list, err := f.controller.StaticPorts(f.t.Context(), api.StaticPortQuery{PortGroup: group})
		if err != nil {
			f.t.Fatal(err)
		}
		got = nil
		for _, p := range list.Ports {
			text := "free"
			if p.Bound || p.Name != "" {
				text = strings.TrimSpace(cmp.Or(p.Name, "bound") + " on " + p.Host + " " + p.State)
			}
			if p.Conflict != "" {
				text += " in conflict"
			}
			got = append(got, text)
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
}
