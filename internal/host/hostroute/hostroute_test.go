package hostroute

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"heddle/internal/lab/netns"
	"heddle/internal/test/testkit"
)

// rig is a namespace with an interface that has addresses.
type rig struct {
	t     *testing.T
	ns    *netns.NS
	index uint32
}

func newRig(t *testing.T) *rig {
	t.Helper()
	testkit.Tool(t, "ip")
	r := &rig{t: t, ns: testkit.NS(t, "net")}
	for _, c := range []string{"link add vmk0 type veth peer name far", "link set far up", "link set vmk0 up",
		"address add 192.0.2.9/24 dev vmk0", "address add 2001:db8::9/64 dev vmk0 nodad"} {
		r.ip(c)
	}
	err := r.ns.Do(func() error {
		l, err := netlink.LinkByName("vmk0")
		if err == nil {
			r.index = uint32(l.Attrs().Index)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) ip(command string) string {
	r.t.Helper()
	out, err := r.ns.Output("ip", strings.Fields(command)...)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(out)
}

func (r *rig) set(want ...Route) error {
	return r.ns.Do(func() error { _, err := Set(&netlink.Handle{}, r.index, want...); return err })
}

// has makes sure that the default routes of all tables are these.
func (r *rig) has(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for _, family := range []string{"-4", "-6"} {
		for line := range strings.Lines(r.ip(family + " route show table all default dev vmk0")) {
			got = append(got, strings.Join(strings.Fields(line), " "))
		}
	}
	if len(got) != len(want) {
		t.Fatalf("the routes are %q, want %q", got, want)
	}
	for i, line := range got {
		if !strings.HasPrefix(line, want[i]) {
			t.Errorf("route %d is %q, want %q", i, line, want[i])
		}
	}
}

func via(gateway string, metric, table uint32) Route {
	return Route{netip.MustParseAddr(gateway), metric, table}
}

// Routes are set, changed and taken back, and those of others stay.
func TestRoutesAreSetAndTakenBack(t *testing.T) {
	r := newRig(t)
	r.ip("route add default via 192.0.2.7 dev vmk0 metric 700 proto static")
	const others = "default via 192.0.2.7 proto static metric 700"
	for _, c := range []struct {
		name string
		set  []Route
		want []string
	}{
		{"one", []Route{via("192.0.2.1", 0, 0)}, []string{"default via 192.0.2.1 proto 72", others}},
		{"the same", []Route{via("192.0.2.1", 0, 254)}, []string{"default via 192.0.2.1 proto 72", others}},
		{"another gateway", []Route{via("192.0.2.2", 0, 0)}, []string{"default via 192.0.2.2 proto 72", others}},
		{"another metric", []Route{via("192.0.2.2", 50, 0)},
			[]string{"default via 192.0.2.2 proto 72 metric 50", others}},
		{"another table", []Route{via("192.0.2.2", 50, 90)},
			[]string{"default via 192.0.2.2 table 90 proto 72 metric 50", others}},
		{"both families", []Route{via("192.0.2.2", 0, 90), via("2001:db8::1", 0, 0)},
			[]string{"default via 192.0.2.2 table 90 proto 72", others,
				"default via 2001:db8::1 proto 72 metric 1024"}},
		{"one that others have set", []Route{via("192.0.2.7", 700, 0)}, []string{others}},
		{"none", nil, []string{others}},
	} {
		t.Run(c.name, func(t *testing.T) { // each from the one before
			if err := r.set(c.set...); err != nil {
				t.Error(err)
			}
			r.has(t, c.want...)
		})
	}
}

// A route that stands against one of others is not set, and the error says what to do.
func TestARouteThatOthersHaveIsRefused(t *testing.T) {
	r := newRig(t)
	r.ip("route add default via 192.0.2.7 dev vmk0")
	r.ip("-6 route add default via 2001:db8::7 dev vmk0 metric 1024")
	for _, w := range []Route{via("192.0.2.1", 0, 0), via("2001:db8::1", 0, 0)} {
		if err := r.set(w); err == nil || !strings.Contains(err.Error(), "another metric") {
			t.Errorf("%s: %v", w, err)
		}
	}
	if err := r.set(via("198.51.100.1", 5, 0)); err == nil || !strings.Contains(err.Error(), "198.51.100.1") {
		t.Errorf("a gateway in no network: %v", err)
	}
	r.has(t, "default via 192.0.2.7", "default via 2001:db8::7")
}
