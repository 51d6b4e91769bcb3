package spec

import (
	"strings"
	"testing"
)

// routed is a configuration with a host port that has this, and another beside it.
func routed(port, beside string) string {
	return "switches:\n- name: s\n  portGroups: [{name: g}]\nports:\n- {name: vmk0, switch: s, portGroup: g, " + port +
		"}\n- {name: vmk1, switch: s, portGroup: g, " + beside + "}\n"
}

func TestTheRouteOfAHostPort(t *testing.T) {
	const own, other = `role: host, addresses: ["192.0.2.9/24", "2001:db8::9/64"]`,
		`role: host, addresses: ["198.51.100.9/24"]`
	for _, c := range []struct{ port, beside, want string }{
		{own + ", gateway: 192.0.2.1", other, ""},
		{own + `, gateway: "2001:db8::1", metric: 5, table: 90`, other, ""},
		{own + `, gateway: "fe80::1"`, other, ""},
		{own + ", gateway: 192.0.2.1", other + ", gateway: 198.51.100.1, metric: 9", ""},
		{own + ", gateway: 192.0.2.1", other + ", gateway: 198.51.100.1, table: 9", ""},
		{own + ", gateway: 192.0.2.1", other + ", gateway: 198.51.100.1", "host port vmk0 has a default route"},
		{own + ", gateway: 192.0.2.1, table: 254", other + ", gateway: 198.51.100.1", "same metric"},
		{own + ", gateway: 203.0.113.1", other, "in the network of none of the port's addresses"},
		{own + ", gateway: 192.0.2.9", other, "the port's own address"},
		{"role: host, gateway: 192.0.2.1", other, "in the network of none"},
		{own + ", gateway: router", other, "the address of a router"},
		{own + ", gateway: 0.0.0.0", other, "the address of a router"},
		{own + `, gateway: "fe80::1%eth0"`, other, "the address of a router"},
		{own + ", gateway: 224.0.0.1", other, "the address of a router"},
		{own + `, gateway: "::ffff:192.0.2.1"`, other, "the address of a router"},
		{own + ", metric: 5", other, "it is for the route by a gateway"},
		{own + ", table: 5", other, "it is for the route by a gateway"},
		{own + ", gateway: 192.0.2.1, metric: -1", other, "a metric is 0 to"},
		{own + ", gateway: 192.0.2.1, metric: 4294967296", other, "a metric is 0 to"},
		{own + ", gateway: 192.0.2.1, table: 255", other, "a routing table is 1 to"},
		{own + ", gateway: 192.0.2.1, table: -2", other, "a routing table is 1 to"},
		{"gateway: 192.0.2.1", other, "only a host port has this"},
		{"metric: 3", other, "only a host port has this"},
	} {
		t.Run(c.port+"/"+c.beside, func(t *testing.T) {
			_, err := Parse("host.yaml", []byte(routed(c.port, c.beside)))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestTheRouteOfAHostPortOfADefinition(t *testing.T) {
	const text = "switches:\n- name: s\n  portGroups: [{name: g}]\ntemplates:\n- name: all\n  switches: [{name: s}]\n" +
		"  hostPorts:\n  - {name: vmk0, switch: s, portGroup: g, PORT}\n"
	for _, c := range []struct{ port, want string }{
		{"pools: [192.0.2.10-192.0.2.99/24], gateway: 192.0.2.1, metric: 7", ""},
		{"pools: [192.0.2.0/24], gateway: 192.0.2.1", "it lies in pool 192.0.2.0/24"},
		{"pools: [192.0.2.10-192.0.2.99/24], gateway: 198.51.100.1", "in the network of none"},
		{"metric: 7", "it is for the route by a gateway"},
	} {
		t.Run(c.port, func(t *testing.T) {
			d, err := ParseDefinition("fleet.yaml", []byte(strings.Replace(text, "PORT", c.port, 1)))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err != nil {
				return
			}
			p := d.Templates[0].HostPorts[0].Port("192.0.2.10/24")
			if p.Gateway != "192.0.2.1" || p.Metric != 7 || p.Table != 0 {
				t.Errorf("the host's port: %+v", p)
			}
		})
	}
}
