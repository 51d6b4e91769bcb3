package spec

import (
	"strings"
	"testing"
)

// A tunnel in a definition is for many hosts, whose controllers tell segments apart by their VNIs.
func TestTheTunnelOfADefinition(t *testing.T) {
	const tunnel = "{endpoints: [{device: eth1}]}"
	for _, c := range []struct{ name, tunnel, vnis, want string }{
		{"right", tunnel, "[{name: a, overlay: {vni: 1}}, {name: b, overlay: {vni: 1}}]", ""},
		{"an address", "{endpoints: [{address: 192.0.2.1}]}", "[{name: a, overlay: {vni: 1}}]",
			"switches[one].tunnel.endpoints[192.0.2.1].address: 192.0.2.1: an address is that of one host"},
		{"an address of a device", `{endpoints: [{device: eth1, address: "2001:db8::1"}]}`,
			"[{name: a, overlay: {vni: 1}}]", "an address is that of one host"},
		{"peers", "{endpoints: [{device: eth1}], peers: [{address: 192.0.2.1}]}", "[{name: a, overlay: {vni: 1}}]",
			"peers are for a host without controllers"},
		{"one VNI on two switches", tunnel, "[{name: a, overlay: {vni: 2}}]", "switch other has this VNI already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "switches:\n- name: other\n  tunnel: {port: 4790, endpoints: [{device: eth2}]}\n" +
				"  portGroups: [{name: x, overlay: {vni: 2}}]\n" +
				"- name: one\n  tunnel: " + c.tunnel + "\n  portGroups: " + c.vnis + "\n"
			_, err := ParseDefinition("fleet.yaml", []byte(text))
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want == "":
			case err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), c.want):
				t.Errorf("%v, want one line with %q", err, c.want)
			}
		})
	}
	// On one host alone the two are apart by their UDP ports.
	if _, err := Parse("heddle.yaml", []byte("switches:\n"+
		"- {name: a, tunnel: {endpoints: [{device: e0}]}, portGroups: [{name: x, overlay: {vni: 2}}]}\n"+
		"- {name: b, tunnel: {port: 4790, endpoints: [{device: e1}]}, portGroups: [{name: x, overlay: {vni: 2}}]}\n",
	)); err != nil {
		t.Error(err)
	}
}
