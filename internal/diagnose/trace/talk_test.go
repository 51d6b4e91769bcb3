package trace

import (
	"fmt"
	"heddle/internal/diagnose"
	"slices"
	"strings"
	"testing"

	"heddle/internal/plan"
)

// answer returns a short form of a talk: each protocol's verdict, the reasons of the causes, and the notes.
func answer(r *diagnose.Report) (verdicts string, reasons []string) {
	var parts []string
	for _, p := range r.Talk.Protocols {
		parts = append(parts, fmt.Sprintf("%s %s", p.Name, p.Verdict))
	}
	for _, c := range r.Talk.Causes {
		reasons = append(reasons, c.Port+" "+c.Reason)
	}
	return strings.Join(parts, ", "), reasons
}

const (
	allYes     = "ARP yes, IPv4 yes, IPv6 yes"
	allNo      = "ARP no, IPv4 no, IPv6 no"
	allUnknown = "ARP unknown, IPv4 unknown, IPv6 unknown"
)

func TestWhetherTwoPortsCanTalk(t *testing.T) {
	groups := "{name: web, vlan: {access: 10}}\n{name: db, vlan: {access: 20}}\n{name: trunk, vlan: {trunk: " +
		"[\"10-20\"]}}"
	text := config("uplinks: [{name: u1, device: p1}, {name: u2, device: p2}]\ndefaults: {teaming: {policy: "+
		"explicit, active: [u1]}}", groups, "vm1 web", "vm2 web", "vm3 db", "vm4 trunk", "vm5 web blocked: true")
	for _, x := range []struct {
		from, to string
		want     string
		causes   []string
		path     string // of IPv4
		note     string
	}{
		{"vm1", "vm2", allYes, nil, "on this host", "IP addresses of guests are not known here"},
		{"vm1", "vm4", allYes, nil, "on this host", "vm4 is a trunk"},
		{"vm3", "vm4", allYes, nil, "on this host", "vm4 is a trunk"},
		{"vm1", "vm3", allNo, []string{"vm3 other-vlan", "vm1 other-vlan"},
			"packet from vm1: other-vlan; packet from vm3: other-vlan",
			"from one VLAN to another packets go by a router"},
		{"vm1", "vm5", allNo, []string{"vm5 receiver-blocked", " port-blocked"},
			"packet from vm1: receiver-blocked; packet from vm5: port-blocked", ""},
		{"vm1", "u1", allYes, nil, "leaves by u1, VLAN 10; on this host", "beyond the uplink"},
		{"u1", "vm3", allYes, nil, "on this host; leaves by u1, VLAN 20", "u1 stands for a station beyond it"},
		{"vm1", "u2", allNo, []string{"u2 other-uplink", "vm1 reverse-path"},
			"packet from vm1: other-uplink; on this host", ""},
	} {
		t.Run(x.from, func(t *testing.T) {
			r := run(t, host(t, text), diagnose.Request{From: x.from, To: x.to})
			got, causes := answer(r)
			if got != x.want || !slices.Equal(causes, x.causes) || r.Talk.Protocols[1].Path != x.path {
				t.Errorf("%s and %s: %s, %q, %q\nwant %s, %q, %q", x.from, x.to, got, causes, r.Talk.Protocols[1].Path,
					x.want, x.causes, x.path)
			}
			if !strings.Contains(strings.Join(r.Notes, "\n"), x.note) {
				t.Errorf("%s and %s: notes %q, want %q", x.from, x.to, r.Notes, x.note)
			}
			if len(r.Talk.Hops) != 10 {
				t.Errorf("%d hops", len(r.Talk.Hops))
			}
		})
	}
}

// Ports of two switches are joined, if at all, by the physical network.
func TestWhatLeavesTheHostIsUnknown(t *testing.T) {
	h := host(t, config("uplinks: [{name: u1, device: p1}]", "{name: web, vlan: {access: 10}}", "vm1 web"))
	o := host(t, strings.ReplaceAll(strings.ReplaceAll(config("uplinks: [{name: u9, device: p9}]", "{name: web, "+
		"vlan: {access: 10}}", "vm2 web"), "lab", "far"), "p1", "p9"))
	// A switch of another name, on the same host.
	h.Plan.Switches = append(h.Plan.Switches, o.Plan.Switches...)
	for id := range o.Plan.Switches[0].Ports {
		h.Facts[o.Plan.Switches[0].Ports[id].ID] = plan.Fact{Up: true, MTU: 1500}
	}
	h.Facts[o.Plan.Switches[0].Uplinks[0].ID] = plan.Fact{Up: true, MTU: 1500, DeviceMAC: mac(0xb1)}
	r := run(t, h, diagnose.Request{From: "vm1", To: "vm2"})
	if got, _ := answer(r); got != allUnknown {
		t.Errorf("%s: %+v", got, r.Talk.Hops)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "whether the physical network, or a router beyond it, brings "+
		"it to vm2 cannot be known") {
		t.Errorf("notes %q", r.Notes)
	}
}

func TestTalkOfTwoUplinksIsRefused(t *testing.T) {
	h := host(t, config("uplinks: [{name: u1, device: p1}, {name: u2, device: p2}]", "{name: web}", "vm1 web"))
	const want = "u1 and u2 are both uplinks: nothing goes from uplink to uplink"
	if _, err := Run(h, diagnose.Request{From: "u1", To: "u2"}); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A guest that uses a forbidden MAC sends nothing that arrives, and receives nothing (S3).
func TestTalkUnderAViolation(t *testing.T) {
	text := config("", "{name: web, vlan: {access: 10}}\n{name: forge, vlan: {access: 10}, security: "+
		"{forgedTransmits: accept}}\n"+
		"{name: free, vlan: {access: 10}, security: {forgedTransmits: accept, macChanges: accept}}", "vm1 web",
		"vm2 web", "vm3 forge", "vm4 free")
	for _, x := range []struct {
		from, path string
		want       string
		causes     []string
	}{
		{"vm1", "packet from vm1: forged-transmit; packet from vm2: mac-change", allNo,
			[]string{" forged-transmit", "vm1 mac-change"}},
		{"vm3", "on this host; packet from vm2: mac-change", allNo, []string{"vm3 mac-change"}},
		{"vm4", "on this host", allYes, nil},
	} {
		t.Run(x.from, func(t *testing.T) {
			h := host(t, text)
			h.Facts[id(x.from)] = plan.Fact{Up: true, MTU: 1500, SeenMAC: mac(0x77)}
			r := run(t, h, diagnose.Request{From: x.from, To: "vm2"})
			got, causes := answer(r)
			if got != x.want || !slices.Equal(causes, x.causes) || r.Talk.Protocols[1].Path != x.path {
				t.Errorf("%s: %s, %q, %q\nwant %s, %q, %q", x.from, got, causes, r.Talk.Protocols[1].Path, x.want,
					x.causes, x.path)
			}
			note := "adapter uses the MAC 02:00:00:00:00:77, and its port does not accept that"
			if said := strings.Contains(strings.Join(r.Notes, "\n"), note); said != (x.want == allNo) {
				t.Errorf("%s: notes %q", x.from, r.Notes)
			}
		})
	}
}
