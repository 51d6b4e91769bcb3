package linkproto_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/qemu"
	"heddle/internal/lab/qemu/image"
	"heddle/internal/test/testkit"
)

// bootTime bounds the time that an emulated guest takes to boot, including making its image.
const bootTime = 5 * time.Minute

// bondScript makes a bond of the guest's two cards in 802.3ad mode.
const bondScript = `set -e
ip link set eth0 down
echo 802.3ad >/sys/class/net/bond0/bonding/mode
echo fast >/sys/class/net/bond0/bonding/lacp_rate
echo 100 >/sys/class/net/bond0/bonding/miimon
echo layer3+4 >/sys/class/net/bond0/bonding/xmit_hash_policy
echo +eth0 >/sys/class/net/bond0/bonding/slaves
echo +eth1 >/sys/class/net/bond0/bonding/slaves
ip addr add 192.0.2.2/24 dev bond0
ip link set bond0 up
`

// bondGuest is a guest with two cards on the host's taps w0 and w1, which its bonding driver bundles.
type bondGuest struct {
	*qemu.Guest
	t *testing.T
}

func newBondGuest(t *testing.T, h *host) bondGuest {
	t.Helper()
	testkit.Tool(t, "qemu-system-x86_64")
	ctx, cancel := context.WithTimeout(t.Context(), bootTime)
	defer cancel()
	img, err := image.Build(ctx, image.Options{Flavour: image.Host, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	for _, tap := range []string{"w0", "w1"} {
		if err := qemu.CreateTap(h.ns, tap, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	// The bonding driver bundles only links whose speed it knows, and runs LACP only on full-duplex links.
	o := qemu.Options{Name: "bond", NetNS: h.ns, Tap: "w0", Image: img, Modules: []string{"bonding"},
		ExtraArgs: []string{
			"-netdev", "tap,id=net1,script=no,downscript=no,vhost=off,ifname=w1",
			"-device", "virtio-net-pci,netdev=net1,romfile=,mac=02:00:00:00:0b:01",
			"-global", "virtio-net-pci.speed=1000", "-global", "virtio-net-pci.duplex=full"}}
	g, err := qemu.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	b := bondGuest{g, t}
	b.sh(bondScript)
	return b
}

// sh runs a shell script in the guest and returns what it printed.
func (g bondGuest) sh(script string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	r, err := g.Run(ctx, script)
	if err != nil || r.ExitCode != 0 {
		g.t.Fatalf("in the guest: %v, exit %d: %s%s", err, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// bundled reports whether the driver has both cards in its active aggregator.
func (g bondGuest) bundled() bool { return g.ports() == "2" }

// ports is how many cards the driver has in its active aggregator.
func (g bondGuest) ports() string {
	g.t.Helper()
	m := bondPorts.FindStringSubmatch(g.sh("cat /proc/net/bonding/bond0"))
	if m == nil {
		return ""
	}
	return m[1]
}

// link connects or disconnects a card's cable.
func (g bondGuest) link(netdev string, up bool) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	if _, err := g.QMP(ctx, "set_link", map[string]any{"name": netdev, "up": up}); err != nil {
		g.t.Fatal(err)
	}
}

var (
	bondPartner   = regexp.MustCompile(`Partner Mac Address: (\S+)`)
	bondPorts     = regexp.MustCompile(`Number of ports: (\d+)`)
	bondAggregate = regexp.MustCompile(`(?m)^Aggregator ID: (\d+)`)
)

// A LAG towards the Linux bonding driver: each is the other's partner, both links are in one aggregator, and if one
// link loses its carrier the guest stays reachable by the other. Then the same with our side passive and slow timeouts.
func TestS52_S53_LinuxBondingDriverIsThePartner(t *testing.T) {
	testkit.Long(t, "bundles links with the bonding driver in each way; TestLACP_AgainstScapyFrameByFrame has LACP")
	t.Parallel()
	testkit.Tool(t, "ping")
	h := newHost(t, "bond")
	g := newBondGuest(t, h)
	h.start(config("192.0.2.1", "timeout: fast, fallback: none", "none"))
	h.used("up0", "up1")
	h.await("the driver has bundled both ports", g.bundled)
	about := g.sh("cat /proc/net/bonding/bond0")
	system := h.uplink("up0").LAG.Actor.System
	if m := bondPartner.FindStringSubmatch(about); m == nil || m[1] != system {
		t.Errorf("the driver's partner is not %s:\n%s", system, about)
	}
	ids := bondAggregate.FindAllStringSubmatch(about, -1)
	if len(ids) < 2 || ids[len(ids)-1][1] != ids[len(ids)-2][1] {
		t.Errorf("both ports are not in one aggregator: %v\n%s", ids, about)
	}
	if p := h.uplink("up1").LAG.Partner; p == nil ||
		p.System != strings.TrimSpace(g.sh("cat /sys/class/net/bond0/address")) {
		t.Errorf("our partner is %+v", p)
	}
	warm(t, h)
	lossless(t, h, 50, "over both links", func() {})
	g.link("net0", false)
	h.used("up1") // the tap stays up: only the missing PDUs show the failure
	// An emulated guest may notice it later than we do, and sends by a link without a carrier until then.
	h.await("the driver has only the other port", func() bool { return g.ports() == "1" })
	lossless(t, h, 50, "over the link that is left", func() {})
	if r := h.uplink("up0").Reason; r != "lacp: partner silent" && r != "lacp: no partner" {
		t.Errorf("reason %q", r)
	}
	g.link("net0", true)
	h.used("up0", "up1")
	h.await("the driver has both ports again", g.bundled)
	lossless(t, h, 50, "over both links again", func() {})
	passiveAndSlow(t, h, g)
}

// passiveAndSlow makes both sides ask for a LACPDU every 30 seconds, and our side send only when the other does (S53).
// The bundle then forms because every change is sent at once, and not because of the period.
func passiveAndSlow(t *testing.T, h *host, g bondGuest) {
	t.Helper()
	g.sh("ip link set bond0 down; echo slow >/sys/class/net/bond0/bonding/lacp_rate")
	h.used()
	apply(t, h, config("192.0.2.1", "mode: passive, timeout: slow, fallback: none", "none"))
	sent := h.uplink("up0").LAG.Out
	g.sh("ip link set bond0 up")
	h.used("up0", "up1")
	h.await("the driver has bundled both ports, slowly", g.bundled)
	if about := g.sh("cat /proc/net/bonding/bond0"); !strings.Contains(about, "LACP rate: slow") {
		t.Errorf("the driver is not slow:\n%s", about)
	}
	for _, name := range []string{"up0", "up1"} {
		says := func(i *api.LACPInfo, words ...string) bool {
			return i != nil && !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(i.State, w) })
		}
		h.await(name+" is passive and slow, its partner active and slow, and both distribute", func() bool {
			u := h.uplink(name).LAG
			return says(&u.Actor, "passive", "slow", "distributing") &&
				says(u.Partner, "active", "slow", "distributing")
		})
	}
	// A member is used as soon as its partner collects; our own PDU about it may be delayed, because at most three
	// LACPDUs are sent in a second.
	h.await("our passive side has spoken", func() bool { return h.uplink("up0").LAG.Out > sent })
	warm(t, h)
	lossless(t, h, 50, "passive and slow", func() {})
}
