package foresee

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"heddle/internal/diagnose"
	"heddle/internal/diagnose/trace"
	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/plan/problem"
	"heddle/internal/spec"
)

func mac(n byte) plan.MAC { return plan.MAC{2, 0, 0, 0, 0, n} }

func id(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }

// host makes a host from a configuration: every device exists and is up with MTU 1500.
func host(t testing.TB, text string) *trace.Host {
	t.Helper()
	cfg, err := spec.Parse("lab.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &trace.Host{Plan: p, Facts: plan.Facts{}, Now: time.Hour, NewModel: model.New, File: "lab.yaml",
		RunTime: map[string]spec.Port{}, ByCommand: map[string]trace.ByCommand{},
		Waiting: map[plan.PortID]problem.Problem{}}
	for _, sw := range p.Switches {
		for i, u := range sw.Uplinks {
			h.Facts[u.ID] = plan.Fact{Up: true, MTU: 1500, DeviceMAC: mac(0xa1 + byte(i))}
		}
		for _, port := range sw.Ports {
			h.Facts[port.ID] = plan.Fact{Up: true, MTU: 1500}
		}
	}
	return h
}

// config has a switch with one uplink, the port groups web and lan, and two ports in each.
func config(uplink, web, lan string) string {
	return fmt.Sprintf(`switches:
- name: lab
  uplinks: [{name: up1, device: eth0%s}]
  portGroups:
  - {name: web%s}
  - {name: lan%s}
ports:
- {name: vm1, switch: lab, portGroup: web, device: d1, mac: "02:00:00:00:00:01"}
- {name: vm2, switch: lab, portGroup: web, device: d2, mac: "02:00:00:00:00:02"}
- {name: vm3, switch: lab, portGroup: lan, device: d3, mac: "02:00:00:00:00:03"}
- {name: vm4, switch: lab, portGroup: lan, device: d4, mac: "02:00:00:00:00:04"}
`, uplink, web, lan)
}

var someTime = time.Unix(1_700_000_000, 0)

// flow is a flow of a port, metered within the last ten minutes.
func flow(port string, vlan uint16, src, dst plan.MAC, from, to string, frames uint64) Flow {
	f := Flow{At: id(port), VLAN: plan.SegmentOf(vlan, false), MAC: src, To: dst,
		First: someTime.Add(-10 * time.Minute), Last: someTime, Frames: frames, Bytes: 98 * frames}
	if from != "" {
		f.Src, f.Dst = netip.MustParseAddr(from), netip.MustParseAddr(to)
	}
	return f
}

// lines are the losses as a test reads them.
func lines(f *diagnose.Foreseen) string {
	var list []string
	for _, l := range f.Losses {
		line := fmt.Sprintf("%s/%s %s %s", l.PortGroup, l.Port, l.MAC, l.VLAN)
		if l.Address.IsValid() {
			line += " " + l.Address.String()
		}
		if l.To != "" {
			line += " to " + l.To
		}
		line += fmt.Sprintf(" %d %s", l.Frames, l.Cause.Reason)
		if l.OfPort {
			line += " of-port"
		}
		if l.Perhaps {
			line += " perhaps"
		}
		list = append(list, line)
	}
	return strings.Join(list, "\n")
}

func TestForesee_WhatPortsSentAndAChangeNewlyDrops(t *testing.T) {
	const forged = ", security: {forgedTransmits: accept}"
	counted := func(names ...string) Seen {
		s := Seen{Ports: map[plan.PortID]Sent{}, Now: someTime}
		for i, n := range names {
			s.Ports[id(n)] = Sent{Frames: uint64(100 * (i + 1)), During: time.Hour}
		}
		return s
	}
	flows := func(list ...Flow) Seen { return Seen{Flows: list, Now: someTime} }
	for _, c := range []struct {
		name       string
		now, after string
		seen       Seen
		learned    []model.MAC
		want       string
	}{
		{name: "nothing changes", now: config("", "", ""), after: config("", "", ""), seen: counted("vm1", "vm3")},
		{name: "a port group is blocked, and only one of its ports has sent", now: config("", "", ""),
			after: config("", ", blocked: true", ""), seen: counted("vm1", "vm3"),
			want: "web/vm1 02:00:00:00:00:01 untagged 100 port-blocked of-port"},
		{name: "a metered source that is not the port's own", now: config("", forged, ""), after: config("", "", ""),
			seen: flows(flow("vm1", 0, mac(1), mac(9), "", "", 7), flow("vm1", 0, mac(0x77), mac(9), "", "", 5),
				flow("vm1", 0, mac(0x77), mac(8), "", "", 6)),
			want: "web/vm1 02:00:00:00:00:77 untagged 11 forged-transmit"},
		{name: "a learned source that is not the port's own", now: config("", ", security: {forgedTransmits: accept, "+
			"macLearning: {enabled: true}}", ""), after: config("", "", ""), seen: counted("vm1"),
			learned: []model.MAC{{Port: id("vm1"), MAC: mac(0x77), Seen: time.Hour}},
			want:    "web/vm1 02:00:00:00:00:77 untagged 100 forged-transmit of-port"},
		{name: "a learned source of a port that has not sent lately", now: config("", ", security: {forgedTransmits: "+
			"accept, macLearning: {enabled: true}}", ""), after: config("", "", ""), seen: counted("vm2"),
			learned: []model.MAC{{Port: id("vm1"), MAC: mac(0x77), Seen: time.Hour}}},
		{name: "an IP address that the guard does not know", now: config("", "", ""),
			after: strings.Replace(config("", ", security: {addressGuard: {enabled: true}}", ""), "device: d1,",
				"device: d1, security: {addressGuard: {addresses: [10.0.0.1]}},", 1),
			seen: flows(flow("vm1", 0, mac(1), mac(9), "10.0.0.1", "10.0.0.9", 7),
				flow("vm1", 0, mac(1), mac(9), "10.0.0.66", "10.0.0.9", 3)),
			want: "web/vm1 02:00:00:00:00:01 untagged 10.0.0.66 3 ip-source-not-allowed"},
		{name: "a trunk loses a VLAN in which a flow was metered", now: config("", ", vlan: {trunk: [10-20]}", ""),
			after: config("", ", vlan: {trunk: [10-19]}", ""),
			seen:  flows(flow("vm1", 20, mac(1), mac(9), "", "", 7), flow("vm1", 19, mac(1), mac(9), "", "", 7)),
			want:  "web/vm1 02:00:00:00:00:01 20 7 vlan-not-allowed"},
		{name: "a trunk loses a VLAN, and nobody knows whether the port sends in it",
			now:   config("", ", vlan: {trunk: [10-20]}", ""),
			after: config("", ", vlan: {trunk: [10-19]}", ""), seen: counted("vm1"),
			want: "web/vm1 02:00:00:00:00:01 20 100 vlan-not-allowed of-port perhaps"},
		{name: "a trunk becomes an access port", now: config("", ", vlan: {trunk: [10-20]}", ""),
			after: config("", ", vlan: {access: 10}", ""), seen: flows(flow("vm1", 10, mac(1), mac(9), "", "", 7)),
			want: "web/vm1 02:00:00:00:00:01 10 7 guest-tagged"},
		{name: "the uplink does not carry the new VLAN, and neighbours on the host still hear it",
			now: config(`, vlans: ["0"]`, "", ""), after: config(`, vlans: ["0"]`, ", vlan: {access: 5}", ""),
			seen: counted("vm1"), want: "web/vm1 02:00:00:00:00:01 untagged to up1 100 uplink-vlan of-port"},
		{name: "the one that a flow is for is in another VLAN then", now: config("", "", ""),
			after: config("", "", ", vlan: {access: 5}"), seen: flows(flow("vm1", 0, mac(1), mac(3), "", "", 7)),
			want: "web/vm1 02:00:00:00:00:01 untagged to vm3 7 other-vlan"},
		{name: "a port moves to another VLAN that works as well", now: config("", "", ""),
			after: config("", ", vlan: {access: 5}", ""), seen: counted("vm1", "vm2")},
		{name: "a smaller MTU drops frames of the size that a flow has", now: config("", "", ""),
			after: strings.Replace(config("", "", ""), "- name: lab\n", "- name: lab\n  mtu: 1280\n", 1),
			seen: flows(Flow{At: id("vm1"), VLAN: plan.SegmentOf(0, false), MAC: mac(1), To: mac(2),
				Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.2"), First: someTime,
				Last: someTime, Frames: 10, Bytes: 15140}),
			want: "web/vm1 02:00:00:00:00:01 untagged 10.0.0.1 10 mtu-exceeded"},
		{name: "a flow that ended two hours ago", now: config("", forged, ""), after: config("", "", ""),
			seen: Seen{Now: someTime.Add(2 * time.Hour), Flows: []Flow{flow("vm1", 0, mac(0x77), mac(9), "", "",
				5)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			now, after := host(t, c.now), host(t, c.after)
			now.Learned = c.learned
			got := Compare(t.Context(), now, after, c.seen)
			if text := lines(got); text != c.want {
				t.Errorf("got\n%s\nwant\n%s", text, c.want)
			}
			for _, l := range got.Losses {
				if l.Cause.Why == "" || l.Cause.Change == "" {
					t.Errorf("a loss without a reason or a remedy: %+v", l.Cause)
				}
			}
		})
	}
}

// What would keep the frames is proposed where the new plan has it: the port group that rejects them.
func TestForesee_NamesTheSettingAndTheRemedy(t *testing.T) {
	now := host(t, config("", ", security: {forgedTransmits: accept}", ""))
	got := Compare(t.Context(), now, host(t, config("", ", security: {forgedTransmits: reject}", "")),
		Seen{Now: someTime, Flows: []Flow{flow("vm1", 0, mac(0x77), mac(9), "", "", 5)}})
	if len(got.Losses) != 1 {
		t.Fatalf("%+v", got)
	}
	c := got.Losses[0].Cause
	if c.Setting == nil || c.Setting.Policy != "security.forgedTransmits" || c.From != "port group web" ||
		c.Edit == nil || c.Edit.Set != "security: {forgedTransmits: accept}" {
		t.Errorf("%+v, edit %+v", c, c.Edit)
	}
}

// A host with a thousand ports and more flows than are looked at answers within bounds, and counts what it left.
func TestForesee_IsBoundedAndSaysWhatItLeft(t *testing.T) {
	var ports strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&ports, "- {name: p%d, switch: lab, portGroup: web, device: e%d, mac: \"02:00:00:01:%02x:%02x\"}\n",
			i, i, i>>8, i&255)
	}
	now, after := host(t, config("", "", "")+ports.String()), host(t, config("", ", blocked: true", "")+ports.String())
	seen := Seen{Now: someTime, FlowsLeft: 11, Ports: map[plan.PortID]Sent{id("vm4"): {Frames: 1}}}
	for i := range 3 * MostSenders {
		seen.Flows = append(seen.Flows, flow(fmt.Sprintf("p%d", i%1000), 0, plan.MAC{2, 0, 0, 1, byte(i % 1000 >> 8),
			byte(i % 1000)}, plan.MAC{2, 1, 0, 0, byte(i >> 8), byte(i)}, "10.0.0.1", "10.0.0.2", uint64(i+1)))
	}
	start := time.Now()
	got := Compare(t.Context(), now, after, seen)
	t.Logf("%d senders on 1004 ports in %s", got.Looked, time.Since(start))
	if got.Looked != MostSenders || got.Left != 2*MostSenders+1+11 || len(got.Losses) != diagnose.MaxLosses ||
		got.More != 1000-diagnose.MaxLosses {
		t.Errorf("looked at %d, left %d, %d losses and %d more", got.Looked, got.Left, len(got.Losses), got.More)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Compare(ctx, now, after, seen); got.Looked != 0 || got.Left != 3*MostSenders+1+11 {
		t.Errorf("a caller that has left: looked at %d, left %d", got.Looked, got.Left)
	}
}
