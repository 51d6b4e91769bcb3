package export

import (
	"net/netip"
	"testing"

	"heddle/internal/netns"
	"heddle/internal/testkit"
)

// The address of the switch is not one of the host: a collector sees all hosts of a switch as one exporter.
func TestS67_SwitchAddressNeedNotBeOneOfTheHost(t *testing.T) {
	testkit.Tool(t, "ip")
	host, far := testkit.NS(t, "exporter"), testkit.NS(t, "collector")
	ip := func(n *netns.NS, args ...string) {
		t.Helper()
		if out, err := n.Output("ip", args...); err != nil {
			t.Fatalf("ip %v: %v %s", args, err, out)
		}
	}
	ip(host, "link", "add", "m0", "type", "veth", "peer", "name", "m1", "netns", far.Name)
	ip(host, "addr", "add", "198.51.100.1/24", "dev", "m0")
	ip(far, "addr", "add", "198.51.100.2/24", "dev", "m1")
	ip(host, "link", "set", "m0", "up")
	ip(far, "link", "set", "m1", "up")
	ip(far, "route", "add", "203.0.113.9/32", "via", "198.51.100.1")
	var c *collector
	if err := far.Do(func() error { c = collect(t, "198.51.100.2:0"); return nil }); err != nil {
		t.Fatal(err)
	}
	var r *rig
	if err := host.Do(func() error {
		r = newRig(t, Config{Source: netip.MustParseAddr("203.0.113.9"), Collectors: []Collector{{Address: "198.51.100.2", Port: c.port(), Shape: VDS}}})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r.send(record(0))
	c.await(1)
	if len(c.messages) != 2 || c.messages[1].from.Addr().String() != "203.0.113.9" {
		t.Errorf("the collector sees %+v, status %+v", c.messages, r.x.Status())
	}
}
