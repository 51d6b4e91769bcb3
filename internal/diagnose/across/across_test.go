package across

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"heddle/internal/diagnose"
	"heddle/internal/plan"
)

// hosts are two that answer as a test says, and remember what they were asked.
type hosts struct {
	asked []string
	// leaves is the tag that esx1 sends with, arrives the uplinks of esx2 at which the port gets the frame.
	drop    string
	leaves  []diagnose.Copy
	arrives []string
	six     bool // IPv6 is dropped
}

func (h *hosts) ask(_ context.Context, host string, q diagnose.Request) (*diagnose.Report, error) {
	what := "frame"
	if f := q.Frame; f != nil {
		what = fmt.Sprintf("dst %v vlan %v", f.DstMAC, deref(f.VLAN))
	}
	h.asked = append(h.asked, fmt.Sprintf("%s: %s to %q, %s", host, q.From, q.To, what))
	f := diagnose.Frame{Number: 1, Delivered: true}
	r := &diagnose.Report{From: q.From, To: q.To, Agree: true}
	no := func(reason string) {
		f.Delivered, f.Reason = false, reason
		f.Causes = []diagnose.Cause{{Reason: reason, Command: "heddle fix"}}
		r.Answer = diagnose.Answer{Verdict: diagnose.No, Text: "it is refused", Reason: reason, Fix: "heddle fix"}
	}
	switch uplink := strings.TrimPrefix(q.From, "dvs/"); {
	case q.Frame != nil && (h.drop != "" || h.six && q.Frame.IP != nil && q.Frame.IP.Dst.Is6()):
		no("forged-transmit")
	case q.Frame != nil:
		f.Copies = h.leaves
	case slices.Contains(h.arrives, uplink):
		f.Copies = []diagnose.Copy{{To: q.To, Kind: diagnose.ToPort, Tag: "untagged"}}
	default:
		no("other-vlan")
	}
	r.Frames = []diagnose.Frame{f}
	return r, nil
}

func deref(v *uint16) any {
	if v == nil {
		return nil
	}
	return *v
}

// out is a copy that leaves by an uplink; dst is the first byte of its destination.
func out(dst string) []diagnose.Copy {
	return []diagnose.Copy{{To: "uplink1", Kind: diagnose.ToUplink, Device: "eno1", Tag: "VLAN 10",
		Bytes: dst + "0000000201020000000101810000100806"}}
}

func stations() (a, b Station) {
	a = Station{End: End{"esx1", "dvs", "vm1"}, MAC: plan.MAC{2, 0, 0, 0, 1, 1}, Uplinks: []string{"uplink1"},
		VLAN: plan.VLAN{Mode: plan.VLANAccess, ID: 10}}
	b = Station{End: End{"esx2", "dvs", "vm2"}, MAC: plan.MAC{2, 0, 0, 0, 2, 1}, Uplinks: []string{"up1", "up2"},
		Uses: []string{"up2"}, VLAN: plan.VLAN{Mode: plan.VLANAccess, ID: 10}}
	return a, b
}

// One story has what both hosts say, and one verdict; a no names the host where the frame ends, and what changes it.
func TestFrame(t *testing.T) {
	for _, row := range []struct {
		name  string
		hosts hosts
		text  string
		path  string
		host  string
		fix   string
	}{
		{"it arrives", hosts{leaves: out("02"), arrives: []string{"up2"}},
			"yes esx1:vm1 reaches esx2:vm2, if the physical network carries VLAN 10 between the hosts, which is not " +
				"known",
			"leaves by uplink1, VLAN 10; comes in by up2", "", ""},
		{"a group's frame arrives by any uplink", hosts{leaves: out("ff"), arrives: []string{"up1"}},
			"yes esx1:vm1 reaches esx2:vm2, if the physical network carries VLAN 10 between the hosts, which is not " +
				"known",
			"leaves by uplink1, VLAN 10; comes in by up1", "", ""},
		{"a station's only by the one it uses", hosts{leaves: out("02"), arrives: []string{"up1"}},
			"no esx1:vm1 does not reach esx2:vm2: the frame ends on host esx2: it is refused",
			"leaves by uplink1, VLAN 10; ends on esx2", "esx2", "heddle fix"},
		{"it is dropped where it begins", hosts{drop: "forged-transmit"},
			"no esx1:vm1 does not reach esx2:vm2: the frame ends on host esx1: it is refused", "dropped on esx1",
			"esx1", "heddle fix"},
		{"it stays where it begins", hosts{leaves: []diagnose.Copy{{To: "vm9", Kind: diagnose.ToPort}}},
			"no esx1:vm1 does not reach esx2:vm2: the frame ends on host esx1, which no uplink of its switch sends " +
				"out: ",
			"stays on esx1", "esx1", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := stations()
			s, err := Frame(t.Context(), row.hosts.ask, a, b, diagnose.Request{Frame: &diagnose.Fields{}})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(s.Answer.Verdict) + " " + s.Answer.Text; got != row.text || s.Legs[0].Path != row.path ||
				s.Host != row.host || s.Answer.Fix != row.fix {
				t.Errorf("%s\n%s, host %q, fix %q\nwant\n%s\n%s, host %q", got, s.Legs[0].Path, s.Host, s.Answer.Fix,
					row.text, row.path, row.host)
			}
			if (len(s.Causes()) == 1) != (row.fix != "") {
				t.Errorf("causes: %v", s.Causes())
			}
		})
	}
}

// A host is asked for its own part: the sender's by its port, the receiver's at each uplink that is up.
func TestFrame_WhoIsAsked(t *testing.T) {
	a, b := stations()
	a.VLAN = plan.VLAN{Mode: plan.VLANTrunk}
	h := &hosts{leaves: out("02"), arrives: []string{"up2"}}
	if _, err := Frame(t.Context(), h.ask, a, b, diagnose.Request{Frame: &diagnose.Fields{}}); err != nil {
		t.Fatal(err)
	}
	want := []string{`esx1: vm1 to "", dst 02:00:00:00:02:01 vlan 10`, `esx2: dvs/up1 to "vm2", frame`,
		`esx2: dvs/up2 to "vm2", frame`}
	if !slices.Equal(h.asked, want) {
		t.Errorf("%q, want %q", h.asked, want)
	}
	// The tunnel beside its uplinks is not asked: what left by an uplink does not come in by it.
	h.asked, b.Uplinks = nil, []string{"tunnel", "up1", "up2"}
	if _, err := Frame(t.Context(), h.ask, a, b, diagnose.Request{Frame: &diagnose.Fields{}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.asked, want) {
		t.Errorf("with a tunnel: %q, want %q", h.asked, want)
	}
	b.Uplinks = []string{"tunnel"}
	s, err := Frame(t.Context(), h.ask, a, b, diagnose.Request{Frame: &diagnose.Fields{}})
	if err != nil || s.Answer.Verdict != diagnose.No || s.Legs[0].Path != "no uplink of esx2 is up" {
		t.Errorf("%+v %v", s, err)
	}
	h.leaves[0].Bytes = ""
	_, b = stations()
	if _, err := Frame(t.Context(), h.ask, a, b, diagnose.Request{Frame: &diagnose.Fields{}}); err == nil ||
		!strings.Contains(err.Error(), "its agent is of an older version") {
		t.Errorf("an agent that does not say how a frame leaves: %v", err)
	}
}

// Two guests can talk when one family of addresses gets through, both ways.
func TestTalk(t *testing.T) {
	a, b := stations()
	h := &hosts{leaves: out("02"), arrives: []string{"up2"}}
	back := h.ask
	ask := func(ctx context.Context, host string, q diagnose.Request) (*diagnose.Report, error) {
		if host == "esx1" && strings.HasPrefix(q.From, "dvs/") {
			h.arrives = append(h.arrives, "uplink1")
		}
		return back(ctx, host, q)
	}
	s, err := Talk(t.Context(), ask, a, b)
	if err != nil || s.Answer.Verdict != diagnose.Yes || len(s.Legs) != 6 || len(s.Notes) != 2 {
		t.Fatalf("%+v %v", s, err)
	}
	h.six = true
	if s, err = Talk(t.Context(), ask, a, b); err != nil || s.Answer.Verdict != diagnose.Yes ||
		!strings.Contains(s.Answer.Text, "esx2:vm2 by IPv4, not by IPv6 (") {
		t.Errorf("%+v %v", s.Answer, err)
	}
	h.drop = "forged-transmit"
	if s, err = Talk(t.Context(), ask, a, b); err != nil || s.Answer.Verdict != diagnose.No || s.Host != "esx1" {
		t.Errorf("%+v %v", s.Answer, err)
	}
}

// Through a tunnel a frame comes to the host whose endpoint the packet is for, and to no other.
func TestFrame_ThroughATunnel(t *testing.T) {
	a, b := stations()
	outer := []diagnose.Outer{{VNI: 10, Destination: netip.MustParseAddr("192.0.2.3"), Host: "esx3"},
		{VNI: 10, Destination: netip.MustParseAddr("192.0.2.9"), Reason: "tunnel-mtu"},
		{VNI: 10, Source: netip.MustParseAddr("192.0.2.1"), Destination: netip.MustParseAddr("192.0.2.2"),
			Host: "esx2"}}
	var asked []string
	ask := func(with []diagnose.Outer) Ask {
		return func(_ context.Context, host string, q diagnose.Request) (*diagnose.Report, error) {
			f := diagnose.Frame{Number: 1, Delivered: true}
			switch p := q.Through; {
			case host == "esx1":
				f.Copies = []diagnose.Copy{{To: "tunnel", Kind: diagnose.ToUplink, Bytes: out("02")[0].Bytes,
					Outer: with}}
			case p == nil:
				t.Errorf("%s is asked for a frame that comes in no packet", host)
			case p.Destination.String() == "192.0.2.2":
				f.Copies = []diagnose.Copy{{To: q.To, Kind: diagnose.ToPort, Tag: "untagged"}}
			default:
				f.Delivered, f.Reason = false, otherEndpoint
			}
			if q.Through != nil {
				asked = append(asked, fmt.Sprint(q.From, " VNI ", q.Through.VNI, " to ", q.Through.Destination))
			}
			return &diagnose.Report{Agree: true, Frames: []diagnose.Frame{f}}, nil
		}
	}
	s, err := Frame(t.Context(), ask(outer), a, b, diagnose.Request{Frame: &diagnose.Fields{}})
	if err != nil {
		t.Fatal(err)
	}
	if want := "esx1:vm1 reaches esx2:vm2, if the physical network carries VXLAN from 192.0.2.1 to 192.0.2.2, " +
		"which is not known"; s.Answer.Verdict != diagnose.Yes || s.Answer.Text != want {
		t.Errorf("%+v", s.Answer)
	}
	if l := s.Legs[0]; l.Path != "leaves by tunnel, VNI 10, from 192.0.2.1 to 192.0.2.2; comes in by tunnel" ||
		l.Outer == nil || l.Outer.Host != "esx2" {
		t.Errorf("%s, %+v", l.Path, l.Outer)
	}
	want := []string{"dvs/tunnel VNI 10 to 192.0.2.3", "dvs/tunnel VNI 10 to 192.0.2.2"}
	if !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
	s, err = Frame(t.Context(), ask(outer[:1]), a, b, diagnose.Request{Frame: &diagnose.Fields{}})
	if l := s.Legs[0]; err != nil || s.Answer.Verdict != diagnose.No || s.Host != "esx1" || l.Reason != otherEndpoint ||
		l.Path != "leaves by tunnel to 192.0.2.3 (esx3): none of them is of esx2" {
		t.Errorf("%+v, %+v, %v", s.Answer, s.Legs[0], err)
	}
}
