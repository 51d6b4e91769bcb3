package view

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"heddle/internal/agent/state"
	"heddle/internal/binding"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

// tunnelled is a host with a tunnel that is up or not, and a port in a segment.
func tunnelled(t *testing.T, more string, up bool) (Source, *plan.Switch) {
	t.Helper()
	cfg, err := spec.Parse("x.yaml", []byte("switches:\n- name: lab\n"+more+"  tunnel: {endpoints: [{device: eth7}]}\n"+
		"  portGroups: [{name: web, overlay: {vni: 5000}}]\nports:\n- {name: vm1, switch: lab, portGroup: web}\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	sw := p.Switches[0]
	src := Source{Plan: p, Applied: &binding.Desired{Facts: plan.Facts{sw.Tunnel.ID: {Up: up}}},
		Problems: map[plan.PortID]problem.Problem{}, Remembered: &state.State{},
		Unattached: func(plan.PortID) problem.Problem { return problem.Problem{} }}
	if !up {
		src.Problems[sw.Tunnel.ID] = problem.Failed(problem.NoEndpoint, "vx-lab", errors.New("there is no device eth7"))
	}
	return src, sw
}

// TestS84_ASwitchOfOverlaySegmentsAloneIsCutOffWithItsTunnel: one with uplinks as well is not, as its VLANs go on.
func TestS84_ASwitchOfOverlaySegmentsAloneIsCutOffWithItsTunnel(t *testing.T) {
	for _, c := range []struct {
		name, more, want string
		up               bool
	}{
		{"the tunnel is up", "", "", true},
		{"the tunnel is down", "", "the tunnel of switch lab is down: there is no device eth7", false},
		{"it has an uplink, too", "  uplinks: [{name: u1, device: eth1}]\n", "no uplink of switch lab is up: u1 (eth1)",
			true},
	} {
		t.Run(c.name, func(t *testing.T) {
			src, sw := tunnelled(t, c.more, c.up)
			if why, maintained := src.Isolated(sw); maintained || (why == "") != (c.want == "") ||
				!strings.HasPrefix(why, c.want) {
				t.Errorf("said %q (maintained %v), want %q", why, maintained, c.want)
			}
		})
	}
}

// TestS84_ATunnelIsShownWithItsEnds: those of other hosts by name, the first ones of many.
func TestS84_ATunnelIsShownWithItsEnds(t *testing.T) {
	var r overlay.Reach
	for i := range 300 {
		a := netip.AddrFrom4([4]byte{192, 0, byte(2 + i>>8), byte(i)})
		r.Endpoints = append(r.Endpoints, overlay.Endpoint{Address: a,
			Host: map[bool]string{true: "b", false: "c"}[i > 0]})
	}
	r.Segments = []overlay.Segment{{VNI: 5000, Members: []netip.Addr{r.Endpoints[1].Address}}}
	list := peers(r)
	if len(list) != 256 || list[0].Host != "b" || list[0].Address != "192.0.2.1" || list[0].Segments != 1 ||
		list[1].Segments != 0 {
		t.Errorf("%d: %+v", len(list), list[:2])
	}
}
