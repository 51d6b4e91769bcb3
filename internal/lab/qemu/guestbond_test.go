package qemu_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
)

// bondConfig has no MAC learning anywhere, so that no result of these tests can come from an entry that ages.
const bondConfig = `
switches:
  - name: lab
    portGroups:
      - {name: strict}
      - {name: bonded, security: {forgedTransmits: accept, macChanges: accept}}
ports:
  - {name: vm, switch: lab, portGroup: strict, device: vm, mac: "02:00:00:00:02:02"}
`

const (
	firstMAC  = "02:00:00:00:02:11"
	secondMAC = "02:00:00:00:02:12"
)

// bondGuest is a guest with two cards of one switch, and a namespace beside it.
type bondGuest struct {
	*heddleHost
	guest
	vm     vm
	socket string
}

func newBondGuest(t *testing.T, ctx context.Context) *bondGuest {
	t.Helper()
	img, err := image.Build(ctx, image.Options{Flavour: image.Host, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	h := newHeddleHost(t, bondConfig)
	g := &bondGuest{heddleHost: h,
		vm:     vm{ns: h.namespaceVM(t, "vm", net.HardwareAddr{2, 0, 0, 0, 2, 2}, "192.0.2.2/24")},
		socket: filepath.Join(h.Dir, "guest.qmp")}
	if err := qemu.CreateTap(h.NS, "second", 1, 1500); err != nil {
		t.Fatal(err)
	}
	g.guest = start(t, ctx, qemu.Options{Name: "guest", NetNS: h.NS, Tap: "first", MAC: net.HardwareAddr{2, 0, 0, 0, 2,
		0x11}, Image: img, Modules: []string{"bonding"},
		ExtraArgs: []string{"-qmp", "unix:" + g.socket + ",server=on,wait=off", "-netdev",
			"tap,id=net1,script=no,downscript=no,ifname=second",
			"-device", "virtio-net-pci,id=nic1,netdev=net1,romfile=,mac=" + secondMAC}})
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return g
}

// connect makes the guest's two ports anew. With a monitor Heddle sees which MACs the guest gives its adapters.
func (g *bondGuest) connect(t *testing.T, ctx context.Context, group string, monitor bool) {
	t.Helper()
	for _, c := range []struct{ name, device, mac, nic string }{{"guest/eth0", "first", firstMAC, "virtio-net-pci.0"},
		{"guest/eth1", "second", secondMAC, "nic1"}} {
		args := []string{"port", "connect", c.name, "--replace", "--port-group", group, "--device", c.device, "--mac",
			c.mac}
		if monitor {
			args = append(args, "--qmp", g.socket, "--qmp-nic", c.nic)
		}
		if out, err := g.Output(ctx, args...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		g.awaitPort(t, ctx, c.name, "up", func(p portView) bool { return p.State == "up" })
	}
}

func (g *bondGuest) do(t *testing.T, ctx context.Context, m machine, command string) string {
	t.Helper()
	out, err := m.run(ctx, command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// bond makes bond0 of both adapters.
func (g *bondGuest) bond(t *testing.T, ctx context.Context, mode string, options ...string) {
	t.Helper()
	script := "set -e; cd /sys/class/net; [ ! -e bond0 ] || echo -bond0 >bonding_masters; ip link set eth0 down; ip " +
		"link set eth1 down; ip addr flush dev eth0\n" +
		"echo +bond0 >bonding_masters; cd bond0/bonding; echo " + mode + " >mode; echo 20 >miimon\n"
	for _, o := range options {
		name, value, _ := strings.Cut(o, "=")
		script += "echo " + value + " >" + name + "\n"
	}
	script += "echo +eth0 >slaves; echo +eth1 >slaves; ip addr add 192.0.2.1/24 dev bond0; ip link set bond0 up\n"
	g.do(t, ctx, g.guest, script)
	g.do(t, ctx, g.vm, "ip neigh flush dev eth0")
}

// active waits until the bond uses an adapter.
func (g *bondGuest) active(t *testing.T, ctx context.Context, want string) {
	t.Helper()
	g.do(t, ctx, g.guest, `n=0; until [ "$(cat /sys/class/net/bond0/bonding/active_slave)" = `+want+
		` ]; do n=$((n+1)); [ $n -lt 15000 ] || exit 1; usleep 20000; done`)
}

// bothLinks waits until the bond sees both adapters up.
func (g *bondGuest) bothLinks(t *testing.T, ctx context.Context) {
	t.Helper()
	g.do(t, ctx, g.guest,
		`n=0; until [ "$(grep -c '^MII Status: up' /proc/net/bonding/bond0)" = 3 ]; do n=$((n+1)); [ $n -lt 15000 ] || exit 1; usleep 20000; done`)
}

// link disconnects the cable of a card or connects it again, like QEMU's user.
func (g *bondGuest) link(t *testing.T, ctx context.Context, nic string, up bool) {
	t.Helper()
	if _, err := g.QMP(ctx, "set_link", map[string]any{"name": nic, "up": up}); err != nil {
		t.Fatal(err)
	}
}

// bothWays makes the two ping each other.
func (g *bondGuest) bothWays(t *testing.T, ctx context.Context, when string) {
	t.Helper()
	for _, way := range []struct {
		name string
		from machine
		to   string
	}{{"to the guest", g.vm, "192.0.2.1"}, {"from the guest", g.guest, "192.0.2.2"}} {
		// With both options, ping sends until three answers have come: an answer that is late on a busy machine
		// does not count as lost.
		out, err := way.from.run(ctx, "ping -c 3 -w 20 "+way.to+" 2>&1; true")
		if err != nil || !strings.Contains(out, " 3 received") && !strings.Contains(out, " 3 packets received") {
			ports, _ := g.Output(ctx, "mac", "list")
			t.Fatalf("%s, %s: %v\n%s\n%s", when, way.name, err, out, ports)
		}
	}
}

var received = regexp.MustCompile(`(\d+) packets transmitted, (\d+) received`)

// outage pings the guest every 10 ms while something happens, and returns for how long no ping was answered.
func (g *bondGuest) outage(t *testing.T, ctx context.Context, happens func()) time.Duration {
	t.Helper()
	answer, wrong := make(chan string, 1), make(chan error, 1)
	go func() {
		out, err := g.vm.run(ctx, "ping -q -i 0.01 -c 400 -W 2 192.0.2.1; true")
		answer <- out
		wrong <- err
	}()
	happens()
	m := received.FindStringSubmatch(<-answer)
	if err := <-wrong; err != nil || m == nil {
		t.Fatalf("ping: %v", err)
	}
	sent, _ := strconv.Atoi(m[1])
	got, _ := strconv.Atoi(m[2])
	return time.Duration(sent-got) * 10 * time.Millisecond
}

// failOver makes the bond lose its active adapter, first by a command in the guest and then by the card's cable, and
// return.
func (g *bondGuest) failOver(t *testing.T, ctx context.Context) {
	t.Helper()
	g.active(t, ctx, "eth0")
	g.bothWays(t, ctx, "at first")
	for _, way := range []struct {
		name       string
		down, back func(eth, nic string)
	}{
		{"ip link set down", func(eth, _ string) { g.do(t, ctx, g.guest, "ip link set "+eth+" down") },
			func(eth, _ string) { g.do(t, ctx, g.guest, "ip link set "+eth+" up") }},
		{"the cable", func(_, nic string) { g.link(t, ctx, nic, false) }, func(_, nic string) {
			g.link(t, ctx, nic, true)
		}},
	} {
		for _, to := range []struct{ eth, gone, nic string }{{"eth1", "eth0", "virtio-net-pci.0"},
			{"eth0", "eth1", "nic1"}} {
			out := g.outage(t, ctx, func() {
				way.down(to.gone, to.nic)
				g.active(t, ctx, to.eth)
			})
			when := fmt.Sprintf("after %s lost its link (%s)", to.gone, way.name)
			g.bothWays(t, ctx, when)
			t.Logf("%s: %v without an answer", when, out)
			way.back(to.gone, to.nic)
			g.bothLinks(t, ctx)
			g.bothWays(t, ctx, to.gone+" is back")
		}
	}
}

// TestS111_ABondInARealGuestFailsOver: Linux' active-backup bond over two ports of one switch, with each of its MAC
// policies.
func TestS111_ABondInARealGuestFailsOver(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	g := newBondGuest(t, ctx)
	for _, c := range []struct {
		name, group, mode string
		monitor           bool
	}{
		{"one MAC, seen", "bonded", "none", true},
		{"one MAC, not seen", "bonded", "none", false},
		{"MACs that change places", "bonded", "follow", true},
		{"the active adapter's MAC, under the default policy", "strict", "active", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g.connect(t, ctx, c.group, c.monitor)
			g.bond(t, ctx, "active-backup", "fail_over_mac="+c.mode)
			if c.mode == "none" && c.monitor {
				g.awaitPort(t, ctx, "guest/eth1", "seen with the bond's MAC", func(p portView) bool {
					return p.SeenMAC == firstMAC && p.Violation == ""
				})
			}
			g.failOver(t, ctx)
		})
	}
}

// TestS111_OtherBondsInARealGuest: the modes that need nothing from the switch work, over both adapters and over one.
// 802.3ad needs LACP, which the switch does not speak with guests, so that no adapter is used.
func TestS111_OtherBondsInARealGuest(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	g := newBondGuest(t, ctx)
	g.connect(t, ctx, "bonded", true)
	for _, mode := range []string{"balance-rr", "balance-xor", "balance-tlb", "balance-alb"} {
		t.Run(mode, func(t *testing.T) {
			g.bond(t, ctx, mode)
			g.bothWays(t, ctx, "over both adapters")
			g.do(t, ctx, g.guest, "ip link set eth0 down")
			g.bothWays(t, ctx, "over the second")
			// These use an adapter again only when it reports its speed, which QEMU's virtio does if a
			// speed is configured.
			if mode == "balance-tlb" || mode == "balance-alb" {
				return
			}
			g.do(t, ctx, g.guest, "ip link set eth0 up")
			g.bothLinks(t, ctx)
			g.do(t, ctx, g.guest, "ip link set eth1 down")
			g.bothWays(t, ctx, "over the first")
		})
	}
	t.Run("802.3ad", func(t *testing.T) {
		g.bond(t, ctx, "802.3ad")
		for from, to := range map[machine]string{g.vm: "192.0.2.1", g.guest: "192.0.2.2"} {
			if out, err := from.run(ctx, "ping -c 3 -W 1 "+to+" 2>&1; true"); err != nil ||
				!strings.Contains(out, "100% packet loss") {
				t.Errorf("to %s: %v %s", to, err, out)
			}
		}
	})
}
