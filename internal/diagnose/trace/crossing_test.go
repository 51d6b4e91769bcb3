package trace

import (
	"net/netip"
	"strings"
	"testing"

	"heddle/internal/diagnose"
	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// overlayHost has a tunnel to two hosts, of which the first has mac(9), and a port group without an overlay.
func overlayHost(t *testing.T, mtu int) *Host {
	t.Helper()
	return overlayWith(t, mtu, "{name: web, overlay: {vni: 10}}\n{name: flat}", "vm1 web", "vm2 web", "vm3 flat")
}

// overlayWith is overlayHost with other port groups and ports.
func overlayWith(t *testing.T, mtu int, groups string, ports ...string) *Host {
	t.Helper()
	h := host(t, config("tunnel: {endpoints: [{address: 192.0.2.1}]}\nuplinks: [{name: uplink1, device: u1}]", groups,
		ports...))
	sw := h.Plan.Switches[0]
	fact := plan.Fact{Up: true, MTU: mtu, Endpoints: []netip.Addr{ip("192.0.2.1")}}
	h.Facts[sw.Tunnel.ID] = fact
	members := []netip.Addr{ip("198.51.100.2"), ip("198.51.100.3")}
	h.Reach = map[string]overlay.Reach{"lab": {
		Endpoints: []overlay.Endpoint{{Address: members[0], Host: "host2"}, {Address: members[1], Host: "host3"}},
		Segments:  []overlay.Segment{{VNI: 10, Members: members}}}}
	h.Known = map[string]model.Known{"lab": {Placed: func(who model.Station) ([]overlay.Location, *model.Shown) {
		if who.MAC != mac(9) {
			return nil, nil
		}
		return []overlay.Location{{Key: overlay.Key{VNI: who.VNI, MAC: who.MAC}, Endpoint: members[0],
			Source: overlay.Announced}}, nil
	}}}
	return h
}

// TestS105_ATraceNamesThePacketsInWhichAFrameLeaves: the outer addresses, the host, and how its place is known.
func TestS105_ATraceNamesThePacketsInWhichAFrameLeaves(t *testing.T) {
	r := run(t, overlayHost(t, 1600), diagnose.Request{From: "vm1", Frame: to(mac(9), diagnose.Fields{})})
	f := &r.Frames[0]
	if len(f.Copies) != 1 || f.Copies[0].To != spec.TunnelName || len(f.Copies[0].Outer) != 1 {
		t.Fatalf("copies: %+v", f.Copies)
	}
	want := diagnose.Outer{VNI: 10, Source: ip("192.0.2.1"), Destination: ip("198.51.100.2"), Host: "host2",
		Known: "announced"}
	if got := f.Copies[0].Outer[0]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	last := f.Steps[len(f.Steps)-1]
	if last.Stage != stageTunnel || last.Text != "in VNI 10 from 192.0.2.1 to 198.51.100.2 (host2): the controllers "+
		"say that "+mac(9).String()+" is there" {
		t.Errorf("%+v", last)
	}
	r = run(t, overlayHost(t, 1600), diagnose.Request{From: "vm1", Frame: to(mac(8), diagnose.Fields{})})
	if got := r.Answer.Text; got != "the frame is delivered to tunnel (VNI 10 to 198.51.100.2 (host2), "+
		"198.51.100.3 (host3))" {
		t.Error(got)
	}
}

// What the tunnel refuses is no copy; a frame that nobody else gets is dropped by it, and the answer says why.
func TestS105_ATraceSaysWhyNothingLeavesByTheTunnel(t *testing.T) {
	r := run(t, overlayHost(t, 1540), diagnose.Request{From: "vm1", Frame: to(mac(9), diagnose.Fields{Length: 1514})})
	f := &r.Frames[0]
	if f.Delivered || f.Reason != "tunnel-mtu" || len(f.Copies) != 0 || r.Answer.Verdict != diagnose.No ||
		r.Answer.Reason != "tunnel-mtu" {
		t.Errorf("%+v\n%+v", f, r.Answer)
	}
	all := plan.MAC{255, 255, 255, 255, 255, 255}
	r = run(t, overlayHost(t, 1540), diagnose.Request{From: "vm1", Frame: to(all, diagnose.Fields{Length: 1514})})
	f = &r.Frames[0] // vm2 gets it
	if !f.Delivered || f.Reason != "" || len(f.Copies) != 1 || f.Copies[0].To != "vm2" {
		t.Errorf("%+v", f)
	}
	if len(f.Causes) != 1 || f.Causes[0].Reason != "tunnel-mtu" || f.Causes[0].Port != spec.TunnelName {
		t.Errorf("causes: %+v", f.Causes)
	}
}

// TestS105_ATraceFromTheTunnel: a frame comes in a VNI, from an endpoint, to an endpoint; what is not taken never
// reaches the switch.
func TestS105_ATraceFromTheTunnel(t *testing.T) {
	for _, row := range []struct {
		what    string
		through *diagnose.Through
		reason  string
		say     string
	}{
		{"it is taken", &diagnose.Through{VNI: 10, Source: ip("198.51.100.2"), Destination: ip("192.0.2.1")}, "", ""},
		{"the VNI of the receiver", nil, "", ""},
		{"a stranger", &diagnose.Through{VNI: 10, Source: ip("203.0.113.9")}, "tunnel-unknown-endpoint", ""},
		{"a VNI that it lacks", &diagnose.Through{VNI: 11, Source: ip("198.51.100.2")}, "tunnel-unknown-vni", ""},
		{"another host's packet", &diagnose.Through{VNI: 10, Source: ip("198.51.100.2"), Destination: ip("192.0.2.7")},
			"other-endpoint", "the packet is for 192.0.2.7, and this host's endpoints are 192.0.2.1"},
	} {
		t.Run(row.what, func(t *testing.T) {
			src := mac(9)
			f := to(mac(1), diagnose.Fields{SrcMAC: &src})
			r := run(t, overlayHost(t, 1600), diagnose.Request{From: "tunnel", To: "vm1", Frame: f,
				Through: row.through})
			got := &r.Frames[0]
			if row.reason == "" {
				if !got.Delivered || len(got.Copies) != 1 || got.Copies[0].To != "vm1" {
					t.Errorf("%+v", got)
				}
				return
			}
			if got.Delivered || got.Reason != row.reason || len(got.Copies) != 0 || len(got.Causes) != 1 ||
				!strings.Contains(got.Causes[0].Why, row.say) || r.Answer.Verdict != diagnose.No {
				t.Errorf("%+v\n%+v", got, r.Answer)
			}
		})
	}
	for what, q := range map[string]diagnose.Request{
		"say in which VNI the frame comes from the tunnel (--vni)": {From: "tunnel", Frame: to(mac(1),
			diagnose.Fields{})},
		"vm1 is no tunnel: frames come from there in no VNI": {From: "vm1", Through: &diagnose.Through{VNI: 10},
			Frame: to(mac(2), diagnose.Fields{})},
		"port vm3 has no VNI: its frames leave by the uplinks of the switch": {From: "vm3", To: "tunnel"},
	} {
		if _, err := Run(overlayHost(t, 1600), q); err == nil || err.Error() != what {
			t.Errorf("%v, want %s", err, what)
		}
	}
}

// Two ends of which one is the tunnel: all frames of the conversation cross it.
func TestS105_ATraceOfAPortAndTheTunnel(t *testing.T) {
	r := run(t, overlayHost(t, 1600), diagnose.Request{From: "vm1", To: "tunnel"})
	if r.Answer.Verdict != diagnose.Yes || !strings.HasPrefix(r.Answer.Text, "vm1 reaches tunnel: leaves by tunnel, "+
		"VNI 10 to ") {
		t.Errorf("%+v", r.Answer)
	}
	r = run(t, overlayHost(t, 1600), diagnose.Request{From: "vm1", To: "vm3"})
	if r.Answer.Verdict == diagnose.Yes {
		t.Errorf("from an overlay segment to a port without one: %+v", r.Answer)
	}
}

// TestS105_ATraceNamesTheSegmentThatAPortIsIn: two ports in no VLAN are not in one segment where their VNIs differ, and
// the port group that is proposed is one of the frame's segment.
func TestS105_ATraceNamesTheSegmentThatAPortIsIn(t *testing.T) {
	for _, c := range []struct{ name, from, to, why, change string }{
		{"out of the segment", "vm1", "vm3", "the frame is in VNI 10, and the port is in no overlay segment, as " +
			"set by the port group flat", "portGroup: web"},
		{"into the segment", "vm3", "vm1", "and the port is in VNI 10, as set by the port group web",
			"portGroup: flat"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := overlayHost(t, 1600)
			h.Groups = []Group{{Switch: "lab", Name: "flat", Policy: *h.Plan.Switches[0].Ports[2].Policy},
				{Switch: "lab", Name: "web", Policy: *h.Plan.Switches[0].Ports[0].Policy, VNI: 10}}
			r := run(t, h, diagnose.Request{From: c.from, To: c.to, Frame: &diagnose.Fields{}})
			if len(r.Frames) != 1 || len(r.Frames[0].Causes) == 0 {
				t.Fatalf("%+v", r)
			}
			got := r.Frames[0].Causes[0]
			if got.Reason != otherSegment || !strings.Contains(got.Why, c.why) || got.Policy != "overlay.vni" ||
				got.Edit == nil || got.Edit.Set != c.change {
				t.Errorf("%+v, edit %+v", got, got.Edit)
			}
		})
	}
}
