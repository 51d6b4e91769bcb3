package overlay_test

import (
	"net/netip"
	"slices"
	"testing"

	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const file = `
switches:
- name: lab
  tunnel:
    endpoints: [{address: 192.0.2.1}]
    peers:
    - {name: h2, address: 192.0.2.2, macs: [{vni: 5000, mac: "02:00:00:00:02:01"}]}
    - {name: h3, address: "2001:db8::3", subnet: "2001:db8::/48"}
  portGroups:
  - {name: web, overlay: {vni: 5000}}
  - {name: db, overlay: {vni: 4000}}
  - {name: unused, overlay: {vni: 3000}}
  - {name: plain}
ports:
- {name: vm1/eth0, switch: lab, portGroup: web}
- {name: vm2/eth0, switch: lab, portGroup: db}
- {name: vm3/eth0, switch: lab, portGroup: web}
- {name: vm4/eth0, switch: lab, portGroup: plain}
`

func resolve(t *testing.T) *plan.Plan {
	t.Helper()
	c, err := spec.Parse("lab.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A host without controllers considers each peer a member of every segment in which it has ports.
func TestOf(t *testing.T) {
	p := resolve(t)
	r := overlay.Of(p.Switches[0])
	two, three := netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("2001:db8::3")
	if !r.Learn || len(r.Endpoints) != 2 || r.Endpoints[0].Host != "h2" || r.Endpoints[1].Address != three {
		t.Errorf("the endpoints are %+v", r.Endpoints)
	}
	var vnis []uint32
	for _, s := range r.Segments {
		vnis = append(vnis, s.VNI)
		if !slices.Equal(s.Members, []netip.Addr{two, three}) {
			t.Errorf("VNI %d has the members %v", s.VNI, s.Members)
		}
	}
	if !slices.Equal(vnis, []uint32{4000, 5000}) {
		t.Errorf("the segments are %v, not those with ports", vnis)
	}
	if s := r.Endpoints[0].SubnetOf().String(); s != "192.0.2.0/24" {
		t.Errorf("the default subnet is %s", s)
	}
	if s := r.Endpoints[1].SubnetOf().String(); s != "2001:db8::/48" {
		t.Errorf("the subnet of the file is %s", s)
	}
	want := overlay.Location{Key: overlay.Key{VNI: 5000, MAC: plan.MAC{2, 0, 0, 0, 2, 1}}, Endpoint: two,
		Source: overlay.Static}
	if l := overlay.StaticOf(p.Switches[0]); len(l) != 1 || l[0] != want {
		t.Errorf("the locations are %v", l)
	}
	if r := overlay.Of(&plan.Switch{Name: "lab"}); r.Learn || r.Endpoints != nil || r.Segments != nil {
		t.Errorf("a switch without a tunnel reaches %+v", r)
	}
}

// The tunnel is one of the host's members, with a number and a device of its own.
func TestTunnelInThePlan(t *testing.T) {
	p := resolve(t)
	sw := p.Switches[0]
	if sw.Tunnel.ID.Name != spec.TunnelName || sw.Tunnel.Device != "vx-lab" || sw.Tunnel.Port != 4789 {
		t.Errorf("the tunnel is %+v", sw.Tunnel)
	}
	for _, port := range sw.Ports {
		if port.Number == sw.Tunnel.Number || sw.Tunnel.Number == 0 {
			t.Errorf("port %s and the tunnel have the number %d", port.ID, port.Number)
		}
	}
	if n := p.Members(); n != len(sw.Ports)+1 {
		t.Errorf("the plan has %d members, with %d ports and a tunnel", n, len(sw.Ports))
	}
	for _, name := range []string{"a switch with a long name", "lab 1"} {
		d := plan.TunnelDevice(name)
		if len(d) > 15 || d == plan.TunnelDevice("other "+name) {
			t.Errorf("the device of %q is %q", name, d)
		}
	}
}

func TestHeadroom(t *testing.T) {
	if n := overlay.Headroom(netip.MustParseAddr("192.0.2.1")); n != 50 {
		t.Errorf("over IPv4 %d bytes", n)
	}
	if n := overlay.Headroom(netip.MustParseAddr("2001:db8::1")); n != 70 {
		t.Errorf("over IPv6 %d bytes", n)
	}
}
