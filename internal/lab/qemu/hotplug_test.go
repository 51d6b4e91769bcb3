package qemu_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/host/qmp"
	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit"
)

// The adapter that is plugged in while its guest runs: its tap, port and netdev have one name.
const (
	plugName     = "plug"
	plugMAC      = "02:00:00:00:03:02"
	plugAddr     = "198.51.100.1"
	plugNIC      = "nic-plug"
	firstNIC     = "virtio-net-pci.0" // as QEMU calls a card without an id
	plugPeerAddr = "198.51.100.9"
)

// unplugs hears which devices a guest has given up. QEMU says that with DEVICE_DELETED: device_del only asks the guest.
type unplugs chan string

func (u unplugs) hear(e qmp.Event) {
	var d struct{ Device string }
	if e.Name == "DEVICE_DELETED" && json.Unmarshal(e.Data, &d) == nil && d.Device != "" {
		select {
		case u <- d.Device:
		default:
		}
	}
}

// do runs commands of a QEMU's monitor, each with its arguments.
func do(t *testing.T, ctx context.Context, g guest, command string, args any) {
	t.Helper()
	if _, err := g.QMP(ctx, command, args); err != nil {
		fatal(t, ctx, "%v", err)
	}
}

// plug gives a guest's QEMU a second adapter on a tap that QEMU makes, and connects its port before the guest sees it.
func (s *site) plug(t *testing.T, ctx context.Context, g guest, host int, more ...string) {
	t.Helper()
	do(t, ctx, g, "netdev_add", map[string]any{"type": "tap", "id": plugName, "ifname": plugName, "script": "no",
		"downscript": "no", "vhost": false})
	addAddrsTo(t, s.hosts[host].NS, plugName) // brings it up
	args := append([]string{"port", "connect", plugName, "--port-group", "web", "--device", plugName, "--mac", plugMAC,
		"--qmp", s.monitor(host, "vm"), "--qmp-nic", plugNIC}, more...)
	if _, err := s.hosts[host].Output(ctx, args...); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, g, "device_add", map[string]any{"driver": "virtio-net-pci", "id": plugNIC, "netdev": plugName,
		"mac": plugMAC, "romfile": "", "bus": "pci.0", "addr": "0x10"})
}

// unplug takes the second adapter from a running guest, and waits until the guest has given it up.
func (s *site) unplug(t *testing.T, ctx context.Context, g guest, host int, u unplugs) {
	t.Helper()
	do(t, ctx, g, "device_del", map[string]any{"id": plugNIC})
	for gone := ""; gone != plugNIC; {
		select {
		case gone = <-u:
		case <-ctx.Done():
			fatal(t, ctx, "the guest never gives up %s: %v", plugNIC, context.Cause(ctx))
		}
	}
	do(t, ctx, g, "netdev_del", map[string]any{"id": plugName})
	s.hosts[host].awaitPort(t, ctx, plugName, "without its tap", func(p portView) bool {
		return p.State == "pending"
	})
	if _, err := s.hosts[host].Output(ctx, "port", "disconnect", plugName); err != nil {
		t.Fatal(err)
	}
}

// uses waits until the guest has its second adapter, gives that its address, and waits until both answer.
func (s *site) uses(t *testing.T, ctx context.Context, g guest) {
	t.Helper()
	if _, err := g.run(ctx, "until [ -e /sys/class/net/eth1 ]; do sleep 0.05; done; ip addr add "+plugAddr+
		"/24 dev eth1 && ip link set eth1 up"); err != nil {
		fatal(t, ctx, "%v", err)
	}
	s.bothAnswer(t, ctx)
}

func (s *site) bothAnswer(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, addr := range []string{migrationAddr, plugAddr} {
		if _, err := s.outside.run(ctx, "until ping -c 1 -W 1 "+addr+"; do sleep 0.05; done"); err != nil {
			fatal(t, ctx, "%v", err)
		}
	}
}

// both waits until both ports of the guest are in a state on a host.
func (s *site) both(t *testing.T, ctx context.Context, host int, state, reason string) {
	t.Helper()
	for _, port := range []string{"vm", plugName} {
		s.hosts[host].awaitPort(t, ctx, port, state, func(p portView) bool {
			return p.State == state && strings.Contains(p.Reason, reason)
		})
	}
}

// An adapter is plugged into a running guest and unplugged again: alone, after its guest's move was prepared, and with
// it. Its port follows the guest as the first one does; the first one notices nothing.
func TestS99_S100_AnAdapterIsPluggedWhileItsGuestMoves(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "ping")
	attempts(t, pluggedAndMoved)
}

func pluggedAndMoved(t *testing.T, ctx context.Context) {
	t.Helper()
	s := newSite(t)
	addAddrs(t, s.outside.ns, plugPeerAddr+"/24")
	gone, m := make(unplugs, 16), newMoves()
	source := s.migrant(t, ctx, 0, "vm", func(e qmp.Event) { gone.hear(e); m.source(e) })
	s.connect(t, ctx, 0, "vm", "vm", "--qmp", s.monitor(0, "vm"), "--qmp-nic", firstNIC)
	// A guest that has not booted hears of no adapter that is plugged, and gives none up.
	if err := source.Ready(ctx); err != nil {
		fatal(t, ctx, "%v", err)
	}
	reachable(t, ctx, s.outside)
	seen := func(host int, port, mac string) {
		t.Helper()
		s.hosts[host].awaitPort(t, ctx, port, "seen by the monitor", func(p portView) bool {
			return p.State == "up" && p.SeenMAC == mac && p.Promiscuous == "no"
		})
	}

	s.plug(t, ctx, source, 0)
	s.uses(t, ctx, source)
	seen(0, plugName, plugMAC)
	seen(0, "vm", migrationMAC)
	s.unplug(t, ctx, source, 0, gone)
	seen(0, "vm", migrationMAC)

	// The move is prepared for one adapter, and given up: it was prepared for two, and one is unplugged.
	s.plug(t, ctx, source, 0)
	s.uses(t, ctx, source)
	given, _ := s.prepare(t, ctx, "given", nil)
	s.plug(t, ctx, given, 1, "--incoming")
	s.both(t, ctx, 1, "waiting", "is to arrive")
	s.unplug(t, ctx, source, 0, gone)
	reachable(t, ctx, s.outside)
	s.both(t, ctx, 1, "waiting", "is to arrive")
	_ = given.Stop() // its error is expected: the guest never arrived
	for _, port := range []string{"vm", plugName} {
		if _, err := s.hosts[1].Output(ctx, "port", "disconnect", port); err != nil {
			t.Fatal(err)
		}
	}

	// The adapter is plugged between the move's preparation and the guest's arrival.
	target, socket := s.prepare(t, ctx, "taken", m.target)
	s.plug(t, ctx, source, 0)
	s.uses(t, ctx, source)
	early := s.listen(t, "to-host1")
	s.plug(t, ctx, target, 1, "--incoming")
	s.both(t, ctx, 1, "waiting", "is to arrive")
	s.both(t, ctx, 0, "up", "")
	s.bothAnswer(t, ctx)
	if n, _ := early.count(); n != 0 {
		t.Errorf("the second host sent %d frames of the guest's before it ran there", n)
	}
	migrate(t, ctx, source, socket)
	m.await(t, ctx)
	s.both(t, ctx, 1, "up", "")
	s.both(t, ctx, 0, "waiting", "has left")
	s.bothAnswer(t, ctx)
	seen(1, plugName, plugMAC)
	if err := source.Stop(); err != nil {
		t.Fatal(err)
	}
	s.bothAnswer(t, ctx)
}

// prepare starts a QEMU that waits for the guest on the second host, and connects the port of its first adapter there.
func (s *site) prepare(t *testing.T, ctx context.Context, name string, onEvent func(qmp.Event)) (guest, string) {
	t.Helper()
	socket := filepath.Join(s.hosts[1].Dir, name)
	g := s.migrant(t, ctx, 1, "vm", onEvent, "-incoming", "unix:"+socket)
	s.connect(t, ctx, 1, "vm", "vm", "--incoming", "--qmp", s.monitor(1, "vm"), "--qmp-nic", firstNIC)
	s.hosts[1].awaitPort(t, ctx, "vm", "waiting", func(p portView) bool { return p.State == "waiting" })
	return g, socket
}
