package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/test/testkit"
)

// referenceRanges are the subnets of the cases of the reference plugin "bridge" with several families.
func referenceRanges(subnets ...string) map[string]any {
	var ranges []any
	for _, s := range subnets {
		ranges = append(ranges, []any{map[string]string{"subnet": s}})
	}
	return map[string]any{"type": "host-local", "ranges": ranges,
		"routes": []map[string]string{{"dst": "0.0.0.0/0"}, {"dst": "::/0"}}}
}

// The cases of the reference plugins' own tests (bridge_test.go, ipam_linux_test.go and static_test.go of
// containernetworking/plugins) that are not about a bridge: subnets of either family, who says the MAC, routes, and
// what becomes of an address when the interface is set down.
func TestCNI_TheReferencePluginsCases(t *testing.T) {
	testkit.Long(t, "connects a container for each case; TestCNI_RoutesStandInTheirTables has one")
	n := newNetwork(t, "1.0.0", "")
	dns := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(dns, []byte("nameserver 192.0.2.53\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		ipam map[string]any
		mac  string // of "args" in the configuration
		env  []string
		// want are lines that the container's addresses and routes have, and answer what ADD answers.
		want   []string
		answer string
	}{
		{name: "IPv4", ipam: referenceRanges("10.1.2.0/24"), want: []string{"inet 10.1.2.2/24",
			"default via 10.1.2.1 dev eth0"}},
		{name: "IPv6", ipam: referenceRanges("2001:db8::/64"), want: []string{"inet6 2001:db8::2/64",
			"default via 2001:db8::1 dev eth0"}},
		{name: "both families", ipam: referenceRanges("192.168.0.0/24", "fd00::/64"), want: []string{
			"inet 192.168.0.2/24", "inet6 fd00::2/64", "default via 192.168.0.1 dev eth0",
			"default via fd00::1 dev eth0"}},
		{name: "three subnets", ipam: referenceRanges("192.168.0.0/24", "fd00::/64", "2001:db8::/64"), want: []string{
			"inet 192.168.0.2/24", "inet6 fd00::2/64", "inet6 2001:db8::2/64", "default via 192.168.0.1 dev eth0"}},
		{name: "name servers", ipam: map[string]any{"type": "host-local", "subnet": "10.1.2.0/24", "resolvConf": dns},
			answer: "192.0.2.53", want: []string{"inet 10.1.2.2/24"}},
		{name: "the MAC of args", ipam: referenceRanges("10.1.2.0/24"), mac: "02:00:00:00:07:89",
			answer: "02:00:00:00:07:89", want: []string{"inet 10.1.2.2/24"}},
		{name: "the runtime's MAC before that of args", ipam: referenceRanges("10.1.2.0/24"), mac: "02:00:00:00:07:89",
			env: []string{`CAP_ARGS={"mac": "02:00:00:00:00:00"}`}, answer: "02:00:00:00:00:00",
			want: []string{"inet 10.1.2.2/24"}},
		{name: "two ways to one destination", ipam: map[string]any{"type": "static", "addresses": []map[string]string{
			{"address": "10.10.0.1/24", "gateway": "10.10.0.254"}, {"address": "3ffe:ffff:0:1ff::1/64"}},
			"routes": []map[string]string{{"dst": "192.168.0.0/16", "gw": "10.10.0.5"},
				{"dst": "192.168.0.0/16", "gw": "10.10.0.6"}, {"dst": "2001:db8:5::/48", "gw": "3ffe:ffff:0:1ff::5"},
				{"dst": "2001:db8:5::/48", "gw": "3ffe:ffff:0:1ff::6"}}},
			want: []string{"192.168.0.0/16 via 10.10.0.5 dev eth0", "192.168.0.0/16 via 10.10.0.6 dev eth0",
				"via 3ffe:ffff:0:1ff::5 dev eth0", "via 3ffe:ffff:0:1ff::6 dev eth0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.ipam["type"] == "host-local" {
				c.ipam["dataDir"] = t.TempDir()
			}
			plugin := map[string]any{"type": "heddle-cni", "portGroup": "web", "ipam": c.ipam,
				"capabilities": map[string]bool{"mac": true}}
			if c.mac != "" {
				plugin["args"] = map[string]any{"cni": map[string]string{"mac": c.mac}}
			}
			n.configurePlugin("1.0.0", plugin)
			ns := testkit.NS(t, "ref")
			out, err := n.cni("add", ns.Path(), c.env...)
			if err != nil || !json.Valid([]byte(out)) || !strings.Contains(out, c.answer) {
				t.Fatalf("add: %v\n%s", err, out)
			}
			have := run(t, ns, "ip addr show dev eth0") + run(t, ns, "ip -4 route") + run(t, ns, "ip -6 route")
			for _, want := range c.want {
				if !strings.Contains(have, want) {
					t.Errorf("the container lacks %q:\n%s", want, have)
				}
			}
			if out, err := n.cni("check", ns.Path()); err != nil {
				t.Errorf("check: %v\n%s", err, out)
			}
			run(t, ns, "ip link set eth0 down")
			have = run(t, ns, "ip addr show dev eth0")
			for _, want := range c.want {
				if strings.HasPrefix(want, "inet") && !strings.Contains(have, want) {
					t.Errorf("set down, the interface has lost %q:\n%s", want, have)
				}
			}
			for range 2 {
				if out, err := n.cni("del", ns.Path(), c.env...); err != nil {
					t.Errorf("del: %v\n%s", err, out)
				}
			}
			n.empty("after " + c.name)
		})
	}
	t.Run("a container that was never connected", func(t *testing.T) {
		if out, err := n.cni("del", testkit.NS(t, "never").Path()); err != nil {
			t.Errorf("del: %v\n%s", err, out)
		}
	})
}
