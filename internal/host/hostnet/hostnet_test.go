package hostnet

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// rig is a namespace with two veths whose other ends are in a second one.
type rig struct {
	t    *testing.T
	ns   *netns.NS
	far  *netns.NS
	a, b uint32
}

func newRig(t *testing.T) *rig {
	t.Helper()
	testkit.Tool(t, "ip")
	r := &rig{t: t, ns: testkit.NS(t, "net"), far: testkit.NS(t, "far")}
	for _, name := range []string{"eth0", "vmk0"} {
		r.run("ip link add " + name + " type veth peer name " + name + " netns " + r.far.Name)
		r.run("ip link set " + name + " up")
		if _, err := r.far.Output("ip", "link", "set", name, "up"); err != nil {
			t.Fatal(err)
		}
	}
	r.in(func() error {
		for name, to := range map[string]*uint32{"eth0": &r.a, "vmk0": &r.b} {
			l, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			*to = uint32(l.Attrs().Index)
		}
		return nil
	})
	return r
}

func (r *rig) in(f func() error) {
	r.t.Helper()
	if err := r.ns.Do(f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) run(command string) string {
	r.t.Helper()
	f := strings.Fields(command)
	out, err := r.ns.Output(f[0], f[1:]...)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(out)
}

func (r *rig) read(name string, index uint32) *Config {
	r.t.Helper()
	var c *Config
	r.in(func() (err error) { c, err = Net{}.Read(name, index); return err })
	return c
}

// shown returns a device's configuration in the form for people, without the device's name, in sorted lines.
func (r *rig) shown(device string) []string {
	r.t.Helper()
	var lines []string
	for _, c := range []string{
		"ip -o address show dev DEV scope global", "ip route show table all dev DEV",
		"ip -6 route show table all dev DEV", "ip neighbour show dev DEV nud permanent",
	} {
		for line := range strings.Lines(r.run(strings.ReplaceAll(c, "DEV", device))) {
			f := strings.Fields(strings.ReplaceAll(line, device, "DEV"))
			if len(f) > 1 && f[1] == "DEV" {
				f = f[1:] // the index
			}
			if slices.Contains(f, "fe80::/64") || slices.Contains(f, "multicast") ||
				strings.HasPrefix(strings.Join(f, " "), "local fe80") || slices.Contains(f, "anycast") {
				continue // each device's own
			}
			text, _, _ := strings.Cut(strings.Join(f, " "), " expires")
			text, _, _ = strings.Cut(text, " valid_lft")
			lines = append(lines, strings.ReplaceAll(text, " nodad", ""))
		}
	}
	slices.Sort(lines)
	return lines
}

func (r *rig) furnish() {
	for _, c := range []string{
		"ip address add 192.0.2.10/24 dev eth0 label eth0:main", "ip address add 192.0.2.11/24 dev eth0",
		"ip address add 198.51.100.1/32 dev eth0",
		"ip address add 2001:db8::10/64 dev eth0 nodad",
		"ip address add 2001:db8::11/64 dev eth0 nodad valid_lft 5000 preferred_lft 4000",
		"ip route add default via 192.0.2.1 dev eth0 metric 50 src 192.0.2.11",
		"ip route add default via 192.0.2.2 dev eth0 metric 60",
		"ip route add 203.0.113.0/24 via 100.64.0.1 dev eth0 onlink mtu 1400",
		"ip route add 10.0.0.0/8 dev eth0 scope link table 77",
		"ip route add default via 10.0.0.9 dev eth0 table 78 onlink",
		"ip -6 route add default via 2001:db8::1 dev eth0",
		"ip -6 route add 2001:db8:77::/48 via fe80::1 dev eth0 metric 7",
		"ip address add 198.51.100.129/25 dev eth0 noprefixroute",
		"ip route add 198.51.100.128/25 dev eth0 proto kernel scope link src 198.51.100.129 metric 100",
		"ip route add 203.0.113.128/25 metric 9 nexthop via 192.0.2.1 dev eth0 weight 3 nexthop via 192.0.2.2 dev " +
			"eth0 onlink",
		"ip -6 route add 2001:db8:88::/48 metric 9 nexthop via 2001:db8::1 dev eth0 nexthop via 2001:db8::2 dev eth0",
		"ip route add blackhole 10.99.0.0/16", "ip route add local 10.88.0.0/16 dev eth0 table 79",
		"ip -6 route add 2001:db8:99::/48 dev eth0 expires 5000",
		"ip rule add iif eth0 lookup 77 priority 500", "ip -6 rule add not oif eth0 lookup 78 priority 501",
		"ip rule add from 192.0.2.10 lookup 78 priority 502",
		"ip neighbour add 192.0.2.2 lladdr 02:00:00:00:00:22 dev eth0 nud permanent",
	} {
		r.run(c)
	}
}

// await polls for a while; if the condition stays false, the comparison after it fails.
func (r *rig) await(true func() bool) {
	for deadline := time.Now().Add(time.Minute); !true() && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
}

func TestS81_EverythingOnADeviceMovesAndComesBack(t *testing.T) {
	r := newRig(t)
	r.furnish()
	// The kernel makes the local routes of IPv6 addresses a little later.
	var before []string
	r.await(func() bool {
		before = r.shown("eth0")
		return len(slices.DeleteFunc(slices.Clone(before), func(l string) bool {
			return !strings.HasPrefix(l, "local 2001:db8")
		})) == 4
	})
	c := r.read("eth0", r.a)
	for range 2 { // each step may be repeated after a crash
		r.in(func() error { return Net{}.Put(c, r.b, "vmk0") })
	}
	for range 2 {
		r.in(func() error { return Net{}.Drop(c, r.a, "eth0") })
	}
	r.await(func() bool { return slices.Equal(before, r.shown("vmk0")) })
	if d := cmp.Diff(before, r.shown("vmk0")); d != "" {
		t.Errorf("on the other device (-before +after):\n%s", d)
	}
	if left := r.shown("eth0"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	text, err := json.Marshal(c) // in the form that is written to disk
	if err != nil {
		t.Fatal(err)
	}
	again := &Config{}
	if err := json.Unmarshal(text, again); err != nil {
		t.Fatal(err)
	}
	r.in(func() error { return Net{}.Put(again, r.a, "eth0") })
	r.in(func() error { return Net{}.Drop(again, r.b, "vmk0") })
	r.await(func() bool { return slices.Equal(before, r.shown("eth0")) })
	if d := cmp.Diff(before, r.shown("eth0")); d != "" {
		t.Errorf("back again (-before +after):\n%s", d)
	}
	if got := c.Gateways; !slices.Contains(got, netip.MustParseAddr("192.0.2.1")) ||
		!slices.Contains(got, netip.MustParseAddr("2001:db8::1")) {
		t.Errorf("gateways %v", got)
	}
	if p, err := c.Probes(nil); err != nil || slices.Contains(p, netip.MustParseAddr("192.0.2.2")) {
		t.Errorf("probes %v, %v: the gateway whose MAC is fixed answers nothing", p, err)
	}
}

func TestS81_ARouteThatOthersMayShareIsRefused(t *testing.T) {
	r := newRig(t)
	r.run("ip address add 192.0.2.10/24 dev eth0")
	r.run("ip nexthop add id 7 via 192.0.2.1 dev eth0")
	r.run("ip route add default nhid 7")
	err := r.ns.Do(func() error { _, err := Net{}.Read("eth0", r.a); return err })
	if err == nil || !strings.Contains(err.Error(), "ip nexthop") {
		t.Errorf("a route with a next-hop object: %v", err)
	}
}

func TestS81_AGatewayThatAnswersIsSeen(t *testing.T) {
	r := newRig(t)
	r.run("ip address add 192.0.2.10/24 dev eth0")
	gateway := netip.MustParseAddr("192.0.2.1")
	asked := func() (ok bool) {
		r.in(func() (err error) { ok, err = Net{}.Answers(r.a, gateway); return err })
		return ok
	}
	for range 2 {
		if asked() {
			t.Fatal("nobody has the address, and it answers")
		}
	}
	if _, err := r.far.Output("ip", "address", "add", "192.0.2.1/24", "dev", "eth0"); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !asked(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the gateway is not seen")
		}
	}
}

// An address leaves the device whatever its label is, such as another name of the device that a network manager gave.
func TestS81_AnAddressLeavesTheDeviceWhateverItsLabel(t *testing.T) {
	r := newRig(t)
	r.run("ip link property add dev eth0 altname enp0s2")
	r.run("ip address add 192.0.2.10/24 dev enp0s2 label enp0s2")
	r.run("ip address add 192.0.2.11/24 dev eth0 label eth0:vpn")
	r.run("ip address add 192.0.2.12/24 dev eth0")
	c := r.read("eth0", r.a)
	r.in(func() error { return Net{}.Put(c, r.b, "vmk0") })
	r.in(func() error { return Net{}.Drop(c, r.a, "eth0") })
	if left := r.run("ip -4 -br address show dev eth0"); strings.Contains(left, "192.0.2.") {
		t.Errorf("left behind: %s", left)
	}
	now := r.run("ip -4 address show dev vmk0")
	for _, want := range []string{"192.0.2.10/24 scope global vmk0", "scope global secondary vmk0:vpn"} {
		if !strings.Contains(now, want) {
			t.Errorf("no %q in\n%s", want, now)
		}
	}
	r.in(func() error {
		if got := otherNames(r.a); len(got) != 1 || got[0] != "enp0s2" {
			t.Errorf("its other names are %q", got)
		}
		return nil
	})
}
