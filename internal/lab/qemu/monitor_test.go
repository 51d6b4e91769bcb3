package qemu_test

import (
	"context"
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
)

// portView is what the tests need of "heddle port show -o json".
type portView struct {
	State, PortGroup, Device, MAC, SeenMAC, Violation, Promiscuous, Reason, Owner string
}

// awaitPort waits until a port is shown as wanted.
func (h *heddleHost) awaitPort(t *testing.T, ctx context.Context, name, what string, ok func(portView) bool) {
	t.Helper()
	for {
		out, err := h.Output(ctx, "port", "show", name, "-o", "json")
		var p portView
		if err == nil {
			err = json.Unmarshal(out, &p)
		}
		if err == nil && ok(p) {
			return
		}
		select {
		case <-ctx.Done():
			fatal(t, ctx, "port %s: never %s: %+v %v", name, what, p, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Port "guest" is the one with the monitor; "vm" and "other" are namespaces.
const monitorConfig = `
switches:
  - name: lab
    portGroups:
      - {name: strict}
      - {name: open, security: {macChanges: accept, promiscuous: accept}}
ports:
  - {name: vm, switch: lab, portGroup: strict, device: vm, mac: "02:00:00:00:02:02"}
  - {name: other, switch: lab, portGroup: strict, device: other, mac: "02:00:00:00:02:03"}
`

// tapGuest is a guest on a tap whose monitor Heddle watches, and two namespaces beside it. Neighbour entries are
// static, so that nothing but what a test sends reaches the guest.
type tapGuest struct {
	*heddleHost
	guest
	vm, other vm
}

const (
	guestMAC  = "02:00:00:00:02:01"
	changeMAC = "02:00:00:00:02:99"
)

func newTapGuest(t *testing.T, ctx context.Context) *tapGuest {
	t.Helper()
	h := newHeddleHost(t, monitorConfig)
	g := &tapGuest{heddleHost: h,
		vm:    vm{ns: h.namespaceVM(t, "vm", net.HardwareAddr{2, 0, 0, 0, 2, 2}, "192.0.2.2/24")},
		other: vm{ns: h.namespaceVM(t, "other", net.HardwareAddr{2, 0, 0, 0, 2, 3}, "192.0.2.3/24")}}
	socket := filepath.Join(h.Dir, "guest.qmp")
	g.guest = start(t, ctx, qemu.Options{Name: "guest", NetNS: h.NS, Tap: "guest", MAC: net.HardwareAddr{2, 0, 0, 0, 2,
		1},
		Addrs: []string{"192.0.2.1/24"}, ExtraArgs: []string{"-qmp", "unix:" + socket + ",server=on,wait=off"}})
	if _, err := h.Output(ctx, "port", "connect", "guest", "--port-group", "strict", "--device", "guest", "--mac",
		guestMAC, "--qmp", socket); err != nil {
		t.Fatal(err)
	}
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	g.do(t, ctx, g.guest, "arp -s 192.0.2.2 02:00:00:00:02:02")
	g.do(t, ctx, g.vm, "ip neigh replace 192.0.2.3 lladdr 02:00:00:00:02:03 dev eth0")
	g.do(t, ctx, g.other, "ip neigh replace 192.0.2.2 lladdr 02:00:00:00:02:02 dev eth0")
	g.reach(t, ctx, guestMAC)
	g.awaitPort(t, ctx, "guest", "seen with its own MAC and not promiscuous", func(p portView) bool {
		return p.SeenMAC == guestMAC && p.Promiscuous == "no" && p.Violation == "" && p.State == "up"
	})
	return g
}

func (g *tapGuest) do(t *testing.T, ctx context.Context, m machine, command string) string {
	t.Helper()
	out, err := m.run(ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reach makes the namespaces send to the guest at that MAC from now on.
func (g *tapGuest) reach(t *testing.T, ctx context.Context, mac string) {
	t.Helper()
	g.do(t, ctx, g.vm, "ip neigh replace 192.0.2.1 lladdr "+mac+" dev eth0")
}

// pings returns how many of three pings are answered.
func (g *tapGuest) pings(t *testing.T, ctx context.Context, from machine, to string) string {
	t.Helper()
	out := g.do(t, ctx, from, "ping -c 3 -i 0.2 -W 1 "+to+"; true")
	for _, n := range []string{"0", "3"} {
		if strings.Contains(out, " "+n+" received") {
			return n
		}
	}
	return out
}

// told fails unless an event about the guest's port says that.
func (g *tapGuest) told(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	out, err := g.Output(ctx, "events", "--kind", "violation", "--port", "guest", "--last", "-1", "--no-follow")
	if err != nil || !strings.Contains(string(out), what) {
		t.Errorf("no event says %q: %s %v", what, out, err)
	}
}

// overheard is how many frames of three pings between the namespaces, and of their answers, the guest received.
func (g *tapGuest) overheard(t *testing.T, ctx context.Context) uint64 {
	t.Helper()
	before := g.unicastHanded(t, ctx)
	if n := g.pings(t, ctx, g.vm, "192.0.2.3"); n != "3" {
		t.Fatalf("the namespaces do not reach one another: %s", n)
	}
	return g.unicastHanded(t, ctx) - before
}

// unicastHanded is how many unicast frames the guest was handed so far.
func (g *tapGuest) unicastHanded(t *testing.T, ctx context.Context) uint64 {
	t.Helper()
	out, err := g.Output(ctx, "stats", "guest", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var port portStats
	if err := json.Unmarshal(out, &port); err != nil {
		t.Fatal(err)
	}
	return sum(port.Counters, "packetsOutUnicast")
}

// TestS3_S4_AGuestBehindATapChangesItsMAC: seen through QEMU's receive filter, with a real guest.
func TestS3_S4_AGuestBehindATapChangesItsMAC(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	g := newTapGuest(t, ctx)
	if n := g.pings(t, ctx, g.vm, "192.0.2.1"); n != "3" {
		t.Fatalf("the guest answers %s of 3 pings before anything changed", n)
	}
	// S3: rejected. The guest receives nothing, at either address, and the violation is reported.
	g.do(t, ctx, g.guest, "ip link set eth0 address "+changeMAC)
	g.awaitPort(t, ctx, "guest", "a violation", func(p portView) bool {
		return p.SeenMAC == changeMAC && strings.Contains(p.Violation, "rejects MAC changes")
	})
	g.told(t, ctx, "rejects MAC changes")
	before := statistics(t, g.NS, "guest").TxPackets
	for _, mac := range []string{guestMAC, changeMAC} {
		g.reach(t, ctx, mac)
		if n := g.pings(t, ctx, g.vm, "192.0.2.1"); n != "0" {
			t.Errorf("S3: at %s the guest answered %s pings", mac, n)
		}
	}
	g.do(t, ctx, g.vm,
		"arping -c 1 -w 1 192.0.2.1 >/dev/null 2>&1; ping -b -c 1 -W 1 192.0.2.255 >/dev/null 2>&1; true")
	if n := statistics(t, g.NS, "guest").TxPackets - before; n != 0 {
		t.Errorf("S3: the guest was handed %d frames", n)
	}
	// S4: in a port group that accepts, the new MAC is the port's, and the old one is nobody's.
	if _, err := g.Output(ctx, "port", "move", "guest", "--port-group", "open"); err != nil {
		t.Fatal(err)
	}
	g.reach(t, ctx, changeMAC)
	if n := g.pings(t, ctx, g.vm, "192.0.2.1"); n != "3" {
		t.Errorf("S4: at its new MAC the guest answered %s pings", n)
	}
	g.reach(t, ctx, guestMAC)
	if n := g.pings(t, ctx, g.vm, "192.0.2.1"); n != "0" {
		t.Errorf("S4: at its old MAC the guest answered %s pings", n)
	}
	// S3 again: with its first MAC, the violation ends.
	if _, err := g.Output(ctx, "port", "move", "guest", "--port-group", "strict"); err != nil {
		t.Fatal(err)
	}
	g.do(t, ctx, g.guest, "ip link set eth0 address "+guestMAC)
	g.awaitPort(t, ctx, "guest", "without violation", func(p portView) bool {
		return p.Violation == "" &&
			p.SeenMAC == guestMAC
	})
	g.told(t, ctx, "violation is over")
	if n := g.pings(t, ctx, g.vm, "192.0.2.1"); n != "3" {
		t.Errorf("S3: at its first MAC again the guest answered %s pings", n)
	}
}

// TestS5_S6_AGuestBehindATapAsksForPromiscuousMode: seen through QEMU's receive filter, with a real guest. When the
// monitor is gone, what it showed is unknown.
func TestS5_S6_AGuestBehindATapAsksForPromiscuousMode(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	g := newTapGuest(t, ctx)
	asks := func(answer string) {
		g.awaitPort(t, ctx, "guest", "promiscuous: "+answer, func(p portView) bool { return p.Promiscuous == answer })
	}
	g.do(t, ctx, g.guest, "ip link set eth0 promisc on")
	asks("yes")
	if n := g.overheard(t, ctx); n != 0 {
		t.Errorf("S5: rejected, the guest was handed %d frames for others", n)
	}
	if _, err := g.Output(ctx, "port", "move", "guest", "--port-group", "open"); err != nil {
		t.Fatal(err)
	}
	if n := g.overheard(t, ctx); n != 6 {
		t.Errorf("accepted and asked for, the guest was handed %d of 6 frames for others", n)
	}
	g.do(t, ctx, g.guest, "ip link set eth0 promisc off")
	asks("no")
	if n := g.overheard(t, ctx); n != 0 {
		t.Errorf("S6: not asked for, the guest was handed %d frames for others", n)
	}
	if err := g.Stop(); err != nil {
		t.Fatal(err)
	}
	g.awaitPort(t, ctx, "guest", "unknown without its guest", func(p portView) bool {
		return p.State != "up" && p.SeenMAC == "" && p.Promiscuous == "unknown"
	})
}
