package qemu_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/realhost"
)

// heddleHost is a host namespace with the real agent.
type heddleHost struct{ *realhost.Host }

// programDir is where heddleProgram puts what it builds; TestMain makes it and removes it.
const programDir = "HEDDLE_QEMU_TEST_PROGRAMS"

// heddleProgram builds the heddle program, once for all tests, and gives its path.
var heddleProgram = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(realhost.BinaryVar); path != "" {
		return path, nil
	}
	path := filepath.Join(os.Getenv(programDir), "heddle")
	build := exec.Command("go", "build", "-o", path, "heddle/cmd/heddle")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build heddle: %w: %s", err, out)
	}
	return path, nil
})

// newHeddleHost starts an agent that goes with the test, newHeddleHostIn one in that namespace.
func newHeddleHost(t *testing.T, yaml string) *heddleHost {
	t.Helper()
	return newHeddleHostIn(t, testkit.NS(t, "host"), yaml)
}

func newHeddleHostIn(t *testing.T, ns *netns.NS, yaml string) *heddleHost {
	t.Helper()
	binary, err := heddleProgram()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(realhost.BinaryVar, binary)
	h := &heddleHost{realhost.New(t, ns)}
	h.Start(yaml)
	return h
}

// portStats is the part of a port's counters that checkBooks needs.
type portStats struct {
	Name                   string
	Counters, Extra, Drops map[string]uint64
}

// sum adds the counters whose names begin with prefix, except for those named.
func sum(counters map[string]uint64, prefix string, except ...string) (n uint64) {
	for name, value := range counters {
		if strings.HasPrefix(name, prefix) && !slices.Contains(except, name) {
			n += value
		}
	}
	return n
}

// checkBooks checks S94 for every port: each frame received was delivered or dropped for one reason. A frame may be on
// its way while the counters are read, so they are read again until they agree, for a minute.
func (h *heddleHost) checkBooks(t *testing.T, ctx context.Context) {
	t.Helper()
	var wrong []string
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := h.Output(ctx, "stats", "-o", "json")
		if err != nil {
			t.Fatal(err)
		}
		var ports []portStats
		if err := json.Unmarshal(out, &ports); err != nil || len(ports) != 3 {
			t.Fatalf("counters of %d ports, not 3: %v", len(ports), err)
		}
		wrong = nil
		for _, p := range ports {
			received := sum(p.Counters, "packetsIn", "packetsInDropped", "packetsInException")
			delivered, dropped := sum(p.Extra, "delivered"), sum(p.Drops, "")
			if received == 0 || received != delivered+dropped {
				wrong = append(wrong, fmt.Sprintf("%s: received %d, delivered %d, dropped %d", p.Name, received,
					delivered, dropped))
			}
		}
		if len(wrong) == 0 || time.Now().After(deadline) {
			break
		}
	}
	for _, w := range wrong {
		t.Error("S94: " + w)
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
	err = h.NS.Do(func() error {
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
func switchGuest(t *testing.T, ctx context.Context, h *heddleHost, name string, card qemu.NIC, host byte,
	program string) guest {
	t.Helper()
	return start(t, ctx, qemu.Options{
		Name: name, NetNS: h.NS, Tap: name, NIC: card, MAC: net.HardwareAddr{2, 0, 0, 0, 1, host},
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

// largeFrames says whether a tap carried whole segments of more than 2000 bytes to the guest during an exchange.
func largeFrames(t *testing.T, h *heddleHost, device string, during func()) bool {
	t.Helper()
	before := statistics(t, h.NS, device)
	during()
	after := statistics(t, h.NS, device)
	return (after.TxBytes-before.TxBytes)/(after.TxPackets-before.TxPackets) > 2000
}

// TestGuest_ExchangesThroughSwitch: guests with virtio-net and with e1000 on taps, and a namespace VM on a veth,
// exchange TCP and UDP through Heddle port groups in all pairs, without VLAN, in an access VLAN, and with a guest that
// tags on a trunk port; the configuration changes while they run.
func TestGuest_ExchangesThroughSwitch(t *testing.T) {
	needGuests(t, qemu.VirtioNet, qemu.E1000)
	program := buildExchange(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	h := newHeddleHost(t, fmt.Sprintf(switchConfig, "{none: true}", "{none: true}"))
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
			h.Configure(fmt.Sprintf(switchConfig, c.guests, c.namespaces))
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
		})
	}
	// The groups are apart when their VLANs are.
	h.Configure(fmt.Sprintf(switchConfig, "{access: 100}", "{access: 200}"))
	if out, err := v.run(ctx, "ping -c 2 -i 0.2 -W 1 192.0.2.1; true"); err != nil ||
		!strings.Contains(out, " 0 received") {
		t.Errorf("a guest in another VLAN answered: %s %v", out, err)
	}
	h.checkBooks(t, ctx)
}
