package qemu_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"heddle/internal/dataplane"
	"heddle/internal/hostdev"
	"heddle/internal/netns"
	"heddle/internal/plan"
	"heddle/internal/qemu"
	"heddle/internal/spec"
	"heddle/internal/testkit"
)

// heddleHost is a host namespace with a Heddle switch in its kernel.
type heddleHost struct {
	ns     *netns.NS
	kernel *dataplane.Kernel
	plan   *plan.Plan
}

// newHeddleHost loads a switch that goes with the test. Its pins are in a bpf file system of their own.
func newHeddleHost(t *testing.T) *heddleHost {
	t.Helper()
	h := &heddleHost{ns: testkit.NS(t, "host")}
	dir := filepath.Join(t.TempDir(), "bpf")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("bpf", dir, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	pins := filepath.Join(dir, "qemu")
	err := h.ns.Do(func() (err error) {
		h.kernel, err = dataplane.Open(dataplane.Options{PinDir: pins})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(h.kernel.Close(), dataplane.Remove(pins)); err != nil {
			t.Error(err)
		}
	})
	return h
}

// configure puts a configuration into force for the devices that the host has now.
func (h *heddleHost) configure(t *testing.T, yaml string) {
	t.Helper()
	cfg, err := spec.Parse("heddle.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	if h.plan, err = plan.Resolve(cfg, nil); err != nil {
		t.Fatal(err)
	}
	err = h.ns.Do(func() error {
		devices, err := hostdev.Open()
		if err != nil {
			return err
		}
		defer devices.Close()
		d := dataplane.Desired{Plan: h.plan, Facts: plan.Facts{}, Attachments: map[plan.PortID]dataplane.Attachment{}}
		for _, p := range h.plan.Switches[0].Ports {
			dev, ok, err := devices.Device(p.Device)
			if err != nil || !ok {
				return fmt.Errorf("device %s: found %v, %w", p.Device, ok, err)
			}
			d.Facts[p.ID] = plan.Fact{Up: dev.Up(), MTU: dev.MTU}
			d.Attachments[p.ID] = dataplane.Attachment{Ifindex: dev.Index, PeerRedirect: dev.Kind == hostdev.Veth && dev.Peer.Elsewhere}
		}
		return h.kernel.Apply(d)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkBooks holds S94 for every port: each frame received was delivered or dropped for one reason.
func (h *heddleHost) checkBooks(t *testing.T) {
	t.Helper()
	all, err := h.kernel.Counters()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range h.plan.Switches[0].Ports {
		c := all[p.ID]
		if c.Received() == 0 || c.Received() != c.Delivered+c.Dropped() {
			t.Errorf("S94: %s: received %d, delivered %d, dropped %v", p.ID, c.Received(), c.Delivered, c.Drops)
		}
	}
}

// namespaceVM connects a namespace by a veth pair whose switch end has the given name.
func (h *heddleHost) namespaceVM(t *testing.T, device string, mac net.HardwareAddr, addrs ...string) *netns.NS {
	t.Helper()
	ns := testkit.NS(t, "vm")
	handle, err := ns.Handle()
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	err = h.ns.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: device}, PeerName: "eth0",
			PeerNamespace: netlink.NsFd(int(handle)), PeerHardwareAddr: mac}
		return errors.Join(netlink.LinkAdd(veth), netlink.LinkSetUp(veth))
	})
	if err != nil {
		t.Fatal(err)
	}
	addAddrs(t, ns, addrs...)
	return ns
}

// The ports of the test; each guest's tap and name is the card's.
const switchConfig = `
switches:
  - name: lab
    kind: distributed
    portGroups:
      - {name: guests, vlan: %s}
      - {name: namespaces, vlan: %s}
ports:
  - {name: virtio, switch: lab, portGroup: guests, device: virtio, mac: "02:00:00:00:01:01"}
  - {name: e1000, switch: lab, portGroup: guests, device: e1000, mac: "02:00:00:00:01:02"}
  - {name: vm, switch: lab, portGroup: namespaces, device: vm, mac: "02:00:00:00:01:03"}
`

// switchGuest starts a guest for a port of switchConfig. It has 192.0.2.HOST untagged.
func switchGuest(t *testing.T, ctx context.Context, h *heddleHost, name string, card qemu.NIC, host byte, program string) guest {
	t.Helper()
	return start(t, ctx, qemu.Options{
		Name: name, NetNS: h.ns, Tap: name, NIC: card, MAC: net.HardwareAddr{2, 0, 0, 0, 1, host},
		Addrs: []string{fmt.Sprintf("192.0.2.%d/24", host)}, Files: map[string]string{exchangePath: program},
	})
}

// addVLAN gives a running guest 198.51.100.HOST in VLAN 7, tagged by the guest.
func addVLAN(t *testing.T, ctx context.Context, g guest, host byte) {
	t.Helper()
	command := fmt.Sprintf(`set -e
for m in $(cat /modules/8021q.order); do insmod /modules/$m.ko; done
vconfig add eth0 7
ip link set eth0.7 up
ip addr add 198.51.100.%d/24 dev eth0.7`, host)
	if _, err := g.run(ctx, command); err != nil {
		t.Fatal(err)
	}
}

// largeFrames tells whether a tap carried whole segments of more than 2000 bytes to the guest in an exchange.
func largeFrames(t *testing.T, h *heddleHost, device string, during func()) bool {
	t.Helper()
	before := statistics(t, h.ns, device)
	during()
	after := statistics(t, h.ns, device)
	return (after.TxBytes-before.TxBytes)/(after.TxPackets-before.TxPackets) > 2000
}

// TestGuest_ExchangesThroughSwitch: guests with virtio-net and with e1000 on taps, and a namespace VM on a veth, exchange TCP and
// UDP through Heddle port groups in all pairs, without VLAN, in an access VLAN, and with a guest that tags on a trunk port; the
// configuration changes while they run.
func TestGuest_ExchangesThroughSwitch(t *testing.T) {
	needGuests(t, qemu.VirtioNet, qemu.E1000)
	program := buildExchange(t)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	h := newHeddleHost(t)
	v := vm{h.namespaceVM(t, "vm", net.HardwareAddr{2, 0, 0, 0, 1, 3}, "192.0.2.3/24", "198.51.100.3/24"), program}
	virtio := switchGuest(t, ctx, h, "virtio", qemu.VirtioNet, 1, program)
	e1000 := switchGuest(t, ctx, h, "e1000", qemu.E1000, 2, program)
	for _, g := range []guest{virtio, e1000} {
		if err := g.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		g.serve(t, ctx)
	}
	v.serve(t, ctx)
	for _, c := range []struct{ name, guests, namespaces, network string }{
		{"none", "{none: true}", "{none: true}", "192.0.2."},
		{"access", "{access: 100}", "{access: 100}", "192.0.2."},
		{"trunk", `{trunk: ["0", "7"]}`, "{access: 7}", "198.51.100."},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.configure(t, fmt.Sprintf(switchConfig, c.guests, c.namespaces))
			if c.name == "trunk" {
				addVLAN(t, ctx, virtio, 1)
				addVLAN(t, ctx, e1000, 2)
			}
			whole := largeFrames(t, h, "virtio", func() {
				if _, err := v.run(ctx, exchangePath+" tcp "+c.network+"1:"+port+" 4000000"); err != nil {
					t.Error(err)
				}
			})
			if !whole {
				t.Error("large segments did not stay whole on their way to the guest")
			}
			exchange(t, ctx, virtio, c.network+"1", v, c.network+"3")
			exchange(t, ctx, e1000, c.network+"2", v, c.network+"3")
			exchange(t, ctx, virtio, c.network+"1", e1000, c.network+"2")
			h.checkBooks(t)
		})
	}
	// The groups are apart when their VLANs are.
	h.configure(t, fmt.Sprintf(switchConfig, "{access: 100}", "{access: 200}"))
	if out, err := v.run(ctx, "ping -c 2 -i 0.2 -W 1 192.0.2.1; true"); err != nil || !strings.Contains(out, " 0 received") {
		t.Errorf("a guest in another VLAN answered: %s %v", out, err)
	}
}
