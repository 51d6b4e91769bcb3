package spec

import (
	"fmt"
	"strings"
	"testing"
)

const goodTunnel = `
switches:
- name: lab
  tunnel:
    endpoints: [{name: a, address: 192.0.2.1}, {hostPort: tep0}, {device: eth1, address: "2001:db8::1"}]
    port: 4790
    replication: two-tier
    peers:
    - {name: h2, address: 192.0.2.2, macs: [{vni: 5000, mac: "02:00:00:00:02:01"}]}
    - {name: h3, address: "2001:db8::3", subnet: "2001:db8::/48"}
  portGroups:
  - {name: web, overlay: {vni: 5000}}
  - {name: tep, vlan: {access: 10}}
ports:
- {name: tep0, switch: lab, portGroup: tep, role: host, addresses: [198.51.100.1/24]}
- {name: vm1/eth0, switch: lab, portGroup: web, device: tap0}
`

func TestTunnelIsRead(t *testing.T) {
	c, err := Parse("lab.yaml", []byte(goodTunnel))
	if err != nil {
		t.Fatal(err)
	}
	s := &c.Switches[0]
	if s.Tunnel.ActualPort() != 4790 || s.Tunnel.ActualReplication() != ReplicateTwoTier ||
		s.PortGroups[0].VNI() != 5000 || s.PortGroups[1].VNI() != 0 || s.Tunnel.Endpoints[1].Label() != "tep0" {
		t.Errorf("read as %+v", s.Tunnel)
	}
	if w := c.Warnings(); len(w) != 0 {
		t.Errorf("the warnings are %q", w)
	}
	if (&Tunnel{}).ActualPort() != DefaultTunnelPort || (&Tunnel{}).ActualReplication() != ReplicateHead {
		t.Error("the defaults are not UDP port 4789 and head-end replication")
	}
}

// What is wrong with a tunnel is one clear line each.
func TestTunnelFaults(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"VNI 0", "overlay: {vni: 5000}", "overlay: {vni: 0}", "a VNI is 1–16777214"},
		{"VNI of 25 bits", "overlay: {vni: 5000}", "overlay: {vni: 16777215}", "a VNI is 1–16777214"},
		{"no tunnel", "tunnel:", "ipfix: {}\n- name: other\n  tunnel:", "has no such port group"},
		{"QinQ inside", "overlay: {vni: 5000}", `overlay: {vni: 5000}, vlan: {trunk: ["1-5"], outer: 802.1ad}`,
			"leave out outer"},
		{"QinQ of a port inside", "device: tap0", `device: tap0, vlan: {trunk: ["1-5"], outer: 802.1ad}`,
			"leave out outer"},
		{"a trunk of all VLANs inside", "overlay: {vni: 5000}", `overlay: {vni: 5000}, vlan: {trunk: ["0-4094"]}`,
			"at most 4094 VLANs inside its overlay segments on a host, and here are 4095"},
		{"a trunk of all VLANs on a port", "device: tap0", `device: tap0, vlan: {trunk: ["0-4094"]}`,
			"at most 4094 VLANs inside its overlay segments on a host, and here are 4095"},
		{"trunks of too many VLANs together", "overlay: {vni: 5000}", `overlay: {vni: 5000}, vlan: {trunk: ["1-4094"]}}` +
			"\n  - {name: more, overlay: {vni: 5001}",
			"at most 4094 VLANs inside its overlay segments on a host, and up to here are 4095"},
		{"UDP port", "port: 4790", "port: 65536", "a UDP port is 1–65535"},
		{"replication", "two-tier", "multicast", "must be head or two-tier"},
		{"endpoint of nothing", "{name: a, address: 192.0.2.1}", "{name: a}",
			"give one of address, hostPort and device"},
		{"endpoint of both", "{hostPort: tep0}", "{hostPort: tep0, device: eth2}", "give hostPort or device"},
		{"endpoint twice", "{hostPort: tep0}", "{address: 192.0.2.1}", "endpoint a has this address already"},
		{"two of a name", "{hostPort: tep0}", "{name: a, hostPort: tep0}",
			"another endpoint of this switch has this name"},
		{"no host port", "{hostPort: tep0}", "{hostPort: tep1}", "there is no host port of this name"},
		{"vNIC as endpoint", "role: host, addresses: [198.51.100.1/24]", "device: tap1",
			"there is no host port of this name"},
		{"endpoint inside its own tunnel", "portGroup: tep, role", "portGroup: web, role",
			"is an overlay segment itself"},
		{"loopback", "192.0.2.1}", "127.0.0.1}", "one that other hosts can reach"},
		{"with length", "192.0.2.2,", "192.0.2.2/24,", "without prefix length"},
		{"mapped address", "192.0.2.2,", `"::ffff:192.0.2.2",`, "one that other hosts can reach"},
		{"own address as a peer", "192.0.2.2,", "192.0.2.1,", "this host's own endpoint a"},
		{"peer twice", `"2001:db8::3", subnet: "2001:db8::/48"`, "192.0.2.2", "peer h2 has this address already"},
		{"subnet of others", "2001:db8::/48", "2001:db9::/48", "a network that contains the peer's address"},
		{"subnets that overlap", `subnet: "2001:db8::/48"}`, `subnet: "2001:db8::/48"}
    - {name: h4, address: "2001:db8:0:1::4"}`, "it overlaps 2001:db8::/48, the subnet of peer h3"},
		{"subnet of another form", "2001:db8::/48", "2001:db8::3/64", "such as 2001:db8::/64"},
		{"group MAC", "02:00:00:00:02:01", "01:00:5e:00:00:01", "the address of one station"},
		{"port called tunnel", "vm1/eth0", "tunnel", "the tunnel's name among its ports"},
		{"uplink called tunnel", "tunnel:\n", "uplinks: [{name: tunnel}]\n  tunnel:\n",
			"the tunnel's name among its ports"},
		{"txUplink", "device: tap0", "device: tap0, txUplink: true", "leave txUplink out"},
		{"UDP port twice", "ports:\n", "- {name: other, tunnel: {port: 4790}}\nports:\n", "uses this UDP port already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(goodTunnel, c.old) {
				t.Fatalf("the file has no %q", c.old)
			}
			_, err := Parse("lab.yaml", []byte(strings.Replace(goodTunnel, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the fault is %v, not one with %q", err, c.want)
			}
		})
	}
}

// What a tunnel asks for in vain is a warning with its line.
func TestTunnelWarnings(t *testing.T) {
	const file = `
switches:
- name: lab
  tunnel:
    endpoints: [%s]
    peers:
    - {name: h2, address: "2001:db8::2", macs: [{vni: %s, mac: "02:00:00:00:02:01"}]}
  portGroups:
  - {name: web, overlay: {vni: 5000}}
`
	for _, c := range []struct{ name, endpoint, vni, want string }{
		{"all is well", `{address: "2001:db8::1"}`, "5000", ""},
		{"the family of a device is not known", `{address: 192.0.2.1}, {device: eth1}`, "5000", ""},
		{"one of two families", `{address: 192.0.2.1}, {address: "2001:db8::1"}`, "5000", ""},
		{"no endpoint", "", "5000", "lab.yaml:5:5: switches[lab].tunnel: it has no endpoint on this host"},
		{"another family", "{address: 192.0.2.1}", "5000", "lab.yaml:7:27: switches[lab].tunnel.peers[h2].address: " +
			"2001:db8::2: this host has no IPv6 endpoint"},
		{"a VNI that is nowhere", `{address: "2001:db8::1"}`, "5001",
			"5001: no port group of this switch has this VNI"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Parse("lab.yaml", fmt.Appendf(nil, file, c.endpoint, c.vni))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.Join(cfg.Warnings(), "\n")
			if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("the warnings are %q, not one with %q", got, c.want)
			}
		})
	}
}
