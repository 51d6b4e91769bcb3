package hostdev

import (
	"errors"
	"net/netip"
	"os/exec"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/netns"
	"heddle/internal/plan"
	"heddle/internal/test/testkit"
)

// openIn opens the view of a namespace; its sockets stay there.
func openIn(t *testing.T, ns *netns.NS) *Host {
	t.Helper()
	var h *Host
	if err := ns.Do(func() (err error) { h, err = Open(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func run(t *testing.T, ns *netns.NS, command string) {
	t.Helper()
	f := strings.Fields(command)
	if _, err := ns.Output(f[0], f[1:]...); err != nil {
		t.Fatal(err)
	}
}

// await applies notifications until the device is as wanted. It takes milliseconds on a machine that has the time.
func await(t *testing.T, h *Host, name, what string, ok func(Device, bool) bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		d, found, err := h.Device(name)
		if err != nil {
			t.Fatal(err)
		}
		if ok(d, found) {
			return
		}
		select {
		case n := <-h.Notes():
			if _, err := h.Apply(n); err != nil {
				t.Fatal(err)
			}
		case <-deadline:
			t.Fatalf("%s: not seen within a minute; device %+v", what, d)
		}
	}
}

// guest makes a host namespace and a guest with a veth between them.
func guest(t *testing.T) (host, vm *netns.NS) {
	t.Helper()
	testkit.Tool(t, "ip")
	host, vm = testkit.NS(t, "host"), testkit.NS(t, "vm")
	run(t, host, "ip link add port0 type veth peer name eth0 address 02:00:00:00:00:01 netns "+vm.Name)
	run(t, host, "ip link set port0 up")
	run(t, vm, "ip link set eth0 up")
	return host, vm
}

func TestD2_GuestChangesItsMACAndWeSeeIt(t *testing.T) {
	host, vm := guest(t)
	h := openIn(t, host)
	d, found, err := h.Device("port0")
	if err != nil || !found {
		t.Fatalf("port0 not found: %v", err)
	}
	if d.Kind != Veth || !d.Peer.Elsewhere || !d.Peer.Seen || d.Peer.MAC.String() != "02:00:00:00:00:01" ||
		!d.Peer.Up() || !d.Up() {
		t.Fatalf("port0 = %+v", d)
	}
	run(t, vm, "ip link set eth0 address 02:00:00:00:00:99")
	await(t, h, "port0", "new MAC", func(d Device, _ bool) bool { return d.Peer.MAC.String() == "02:00:00:00:00:99" })
	run(t, vm, "ip link set eth0 mtu 1400")
	await(t, h, "port0", "new MTU", func(d Device, _ bool) bool { return d.Peer.MTU == 1400 })
	run(t, vm, "ip link set eth0 down")
	await(t, h, "port0", "guest down", func(d Device, _ bool) bool { return !d.Peer.AdminUp })
}

func TestD1_GuestAsksForPromiscuousModeByFlagOrBySocket(t *testing.T) {
	host, vm := guest(t)
	h := openIn(t, host)
	await(t, h, "port0", "not promiscuous", func(d Device, _ bool) bool { return d.Peer.Seen && !d.Peer.Promiscuous })
	run(t, vm, "ip link set eth0 promisc on")
	await(t, h, "port0", "flag", func(d Device, _ bool) bool { return d.Peer.Promiscuous })
	run(t, vm, "ip link set eth0 promisc off")
	await(t, h, "port0", "flag gone", func(d Device, _ bool) bool { return !d.Peer.Promiscuous })
	testkit.Tool(t, "tcpdump")
	capture := exec.Command("tcpdump", "-i", "eth0", "-w", "/dev/null")
	if err := vm.Start(capture); err != nil {
		t.Fatal(err)
	}
	stop := func() { _ = capture.Process.Kill(); _ = capture.Wait() }
	defer stop()
	await(t, h, "port0", "packet socket", func(d Device, _ bool) bool { return d.Peer.Promiscuous })
	stop()
	await(t, h, "port0", "packet socket gone", func(d Device, _ bool) bool { return !d.Peer.Promiscuous })
}

func TestDeviceAppearsIsRenamedMovesAndVanishes(t *testing.T) {
	testkit.Tool(t, "ip")
	host, vm := testkit.NS(t, "host"), testkit.NS(t, "vm")
	h := openIn(t, host)
	absent := func(_ Device, found bool) bool { return !found }
	await(t, h, "port0", "nothing yet", absent)
	run(t, host, "ip link add port0 type veth peer name eth0")
	await(t, h, "port0", "appears", func(d Device, found bool) bool {
		return found && d.Peer.Seen &&
			!d.Peer.Elsewhere
	})
	run(t, host, "ip link set eth0 netns "+vm.Name)
	await(t, h, "port0", "other end moved away", func(d Device, _ bool) bool { return d.Peer.Elsewhere && d.Peer.Seen })
	run(t, vm, "ip link set eth0 netns "+host.Name)
	await(t, h, "port0", "other end is back", func(d Device, _ bool) bool { return !d.Peer.Elsewhere })
	run(t, host, "ip link set eth0 netns "+vm.Name)
	await(t, h, "port0", "other end moved away again", func(d Device, _ bool) bool { return d.Peer.Elsewhere })
	run(t, host, "ip link set port0 name port1")
	await(t, h, "port1", "renamed", func(_ Device, found bool) bool { return found })
	await(t, h, "port0", "old name gone", absent)
	run(t, vm, "ip link del eth0")
	await(t, h, "port1", "vanishes", absent)
}

func TestPeerMovesOnToAThirdNamespace(t *testing.T) {
	host, vm := guest(t)
	other := testkit.NS(t, "other")
	h := openIn(t, host)
	await(t, h, "port0", "seen", func(d Device, _ bool) bool { return d.Peer.Seen })
	run(t, vm, "ip link set eth0 netns "+other.Name)
	run(t, other, "ip link set eth0 address 02:00:00:00:00:55")
	await(t, h, "port0", "seen in the third", func(d Device, _ bool) bool {
		return d.Peer.Seen && d.Peer.MAC.String() == "02:00:00:00:00:55"
	})
}

func TestTapIsToldFromOtherDevices(t *testing.T) {
	testkit.Tool(t, "ip")
	host := testkit.NS(t, "host")
	run(t, host, "ip tuntap add tap0 mode tap")
	run(t, host, "ip tuntap add tun0 mode tun")
	h := openIn(t, host)
	for name, want := range map[string]Kind{"tap0": Tap, "tun0": Other, "lo": Other} {
		t.Run(name, func(t *testing.T) {
			d, found, err := h.Device(name)
			if err != nil || !found || d.Kind != want || d.Peer.Index != 0 {
				t.Errorf("%s: %+v, found %v, %v; want kind %s", name, d, found, err, want)
			}
		})
	}
}

func TestPairIsMadeAddressedAndRemoved(t *testing.T) {
	testkit.Tool(t, "ip")
	host := testkit.NS(t, "host")
	h := openIn(t, host)
	mac := plan.MAC{2, 0, 0, 0, 7, 7}
	if err := h.CreatePair(Pair{Host: "vmk0", MAC: mac, MTU: 1400, Switch: "hdl-x", Alias: "heddle test"}); err != nil {
		t.Fatal(err)
	}
	d, found, err := h.Device("vmk0")
	if err != nil || !found || d.MAC != mac || d.MTU != 1400 || d.Alias != "heddle test" || d.Peer.Elsewhere ||
		!d.Peer.Seen {
		t.Fatalf("vmk0 = %+v, %v, %v", d, found, err)
	}
	for _, want := range [][]netip.Prefix{
		{netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64")},
		{netip.MustParsePrefix("192.0.2.2/24")},
	} {
		err := host.Do(func() error { // kernel parameters are those of the caller's namespace
			have, err := h.Addresses(d)
			for _, p := range want {
				err = errors.Join(err, h.AddAddress(d, p))
			}
			for _, p := range have {
				err = errors.Join(err, h.RemoveAddress(d, p))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		out, err := host.Output("ip", "-o", "addr", "show", "dev", "vmk0", "scope", "global")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(out), "\n"); got != len(want) {
			t.Errorf("%d addresses, want %d:\n%s", got, len(want), out)
		}
		for _, p := range want {
			if !strings.Contains(string(out), p.String()) {
				t.Errorf("address %s missing:\n%s", p, out)
			}
		}
	}
	if err := h.SetUp(d, true); err != nil {
		t.Fatal(err)
	}
	if d, _, _ = h.Device("vmk0"); !d.AdminUp {
		t.Error("not up")
	}
	if err := h.Delete(d); err != nil {
		t.Fatal(err)
	}
	if out, err := host.Output("ip", "-o", "link"); err != nil || strings.Count(string(out), "\n") != 1 {
		t.Errorf("left behind: %s %v", out, err)
	}
}

func TestLostNotificationsAreMadeUpForByListing(t *testing.T) {
	testkit.Tool(t, "ip")
	host := testkit.NS(t, "host")
	h := openIn(t, host)
	run(t, host, "ip link add port0 type veth peer name eth0")
	if changed, err := h.Apply(Note{resync: true}); err != nil || !changed {
		t.Fatal(changed, err)
	}
	if _, found, _ := h.Device("port0"); !found {
		t.Error("port0 not listed")
	}
}

func TestS96_AddressesOfMoreThanLinkScopeAreTheHostsTraffic(t *testing.T) {
	ns := testkit.NS(t, "addr")
	run(t, ns, "ip link add e0 type veth peer name e1")
	run(t, ns, "ip link set e0 up")
	run(t, ns, "ip link set e1 up")
	h := openIn(t, ns)
	has := func(want bool) func(Device, bool) bool {
		return func(d Device, found bool) bool { return found && d.HostTraffic == want }
	}
	await(t, h, "e0", "nothing but its link-local address", has(false))
	for _, a := range []string{"10.7.0.1/24", "fd07::1/64"} {
		run(t, ns, "ip address add "+a+" dev e0")
		await(t, h, "e0", a, has(true))
		run(t, ns, "ip address del "+a+" dev e0")
		await(t, h, "e0", a+" is gone", has(false))
	}
	run(t, ns, "ip address add 169.254.1.1/16 dev e0 scope link")
	run(t, ns, "ip address add 10.7.0.1/24 dev e1")
	await(t, h, "e1", "the other end's address", has(true))
	await(t, h, "e0", "an address of link scope", has(false))
	run(t, ns, "ip address add 10.7.0.2/24 dev e0")
	if again := openIn(t, ns); true {
		await(t, again, "e0", "one that was there before", has(true))
	}
}
