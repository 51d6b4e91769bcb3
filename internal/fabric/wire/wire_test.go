package wire

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
	"heddle/internal/plan"
)

var end = fabric.End{Host: "id", Switch: "prod", Uplink: "uplink1"}

// What a host says of its uplinks and results is bounded, and never makes a message that nobody can send: a text is cut
// between characters.
func TestS104_WhatAHostSaysOfProbesIsBounded(t *testing.T) {
	long := strings.Repeat("a", mostText-1) + "é"
	vlans := make([]uint32, 100_000)
	for i := range vlans {
		vlans[i] = uint32(i % 5000)
	}
	uplink := func(sw, name string) *controllerv1.ProbeUplink {
		return &controllerv1.ProbeUplink{Switch: sw, Uplink: name, Mac: make([]byte, 6), Mtu: 1500, Vlans: vlans,
			Plug: long, Bundle: long}
	}
	got := ReadUplinks("id", "esx1", &controllerv1.ProbeUplinks{Uplinks: []*controllerv1.ProbeUplink{
		uplink("prod", "\x1b[31m"), uplink(long, "uplink1"), uplink("prod", "uplink1")}})
	if len(got) != 1 || len(got[0].VLANs) != mostVLANs || cap(got[0].VLANs) > mostVLANs ||
		got[0].Plug != long[:mostText-1] {
		t.Fatalf("%d uplinks", len(got))
	}
	if _, err := proto.Marshal(Uplinks(got)); err != nil {
		t.Error(err)
	}
	path := func(sw, to string) *controllerv1.ProbeResult {
		return &controllerv1.ProbeResult{Path: &controllerv1.ProbePath{Switch: sw, Uplink: "uplink1", Host: "other",
			To: to, Vlans: vlans[:2]}, Astray: long}
	}
	results, _ := ReadResults("id", &controllerv1.ProbeResults{Results: []*controllerv1.ProbeResult{
		path(long, "uplink1"), path("prod", "up\nlink"), path("prod", "uplink1")}})
	if len(results) != 2 || results[0].Astray != long[:mostText-1] {
		t.Errorf("results: %+v", results)
	}
}

// What is written is read again, as it was.
func TestS109_WhatIsSaidOfProbesIsReadAgain(t *testing.T) {
	members := []fabric.Member{{End: end, Name: "esx1", MAC: plan.MAC{2, 0, 0, 0, 0, 1}, MTU: 9000,
		VLANs: []uint16{0, 10, 4094}, Bundle: "LAG lag1", Plug: "port 7 of tor-a"}}
	if got := ReadUplinks("id", "esx1", Uplinks(members)); !reflect.DeepEqual(got, members) {
		t.Errorf("uplinks: %+v", got)
	}
	path := fabric.Path{From: end, To: fabric.End{Host: "other", Switch: "prod", Uplink: "uplink2"}, VLAN: 10}
	tasks := []fabric.Task{{Path: path, MAC: plan.MAC{2, 0, 0, 0, 0, 2}, MTU: 1500}}
	if got := ReadTasks("id", Tasks(tasks)); !reflect.DeepEqual(got, tasks) {
		t.Errorf("tasks: %+v", got)
	}
	results := []fabric.Result{{Path: path, State: fabric.Passes, Full: fabric.Lost, Fits: 1400, Astray: "uplink3",
		Delay: 3 * time.Millisecond, Loss: 7}}
	deaf := []fabric.Deaf{{From: end.ID(), To: path.To.ID(), VLAN: 20}}
	if got, gotDeaf := ReadResults("id", Results(results, deaf)); !reflect.DeepEqual(got, results) ||
		!reflect.DeepEqual(gotDeaf, deaf) {
		t.Errorf("results: %+v, %+v", got, gotDeaf)
	}
	findings := []fabric.Finding{{Code: fabric.MTULow, Note: true, Switch: "prod", VLANs: []uint16{10},
		Ends: []string{"a"}, Others: []string{"b"}, Have: 1400, Want: 1500, Text: "text", Remedy: "remedy"}}
	if got := ReadFindings(Findings(findings)); !reflect.DeepEqual(got, findings) {
		t.Errorf("findings: %+v", got)
	}
	keys := fabric.Secrets([]byte("secret"), time.Unix(1e9, 0))
	if got := ReadKeys(Keys(keys)); !reflect.DeepEqual(got, keys) {
		t.Errorf("keys: %+v", got)
	}
	for _, a := range []string{"192.0.2.1", "2001:db8::1"} {
		tunnels := []fabric.Tunnel{{Switch: "dvs", Host: "id", Name: "esx1", Own: netip.MustParseAddr(a),
			Peer: netip.MustParseAddr(a).Next(), PeerName: "esx2", MTU: 1500, Port: 4789, Deaf: true,
			Result: fabric.Result{State: fabric.Passes, Full: fabric.Lost, Fits: 1450, Delay: 5 * time.Millisecond,
				Usual: time.Millisecond, Loss: 9}}}
		if got := ReadTunnels("id", "esx1", Tunnels(tunnels)); !reflect.DeepEqual(got, tunnels) {
			t.Errorf("tunnels: %+v", got)
		}
	}
}

// What another machine says and makes no sense is left out.
func TestS109_NonsenseOfProbesIsLeftOut(t *testing.T) {
	long := string(make([]byte, 1000))
	uplink := func(change func(*controllerv1.ProbeUplink)) *controllerv1.ProbeUplinks {
		u := &controllerv1.ProbeUplink{Switch: "prod", Uplink: "uplink1", Mac: make([]byte, 6), Mtu: 1500,
			Vlans: []uint32{10, 10, 5000}}
		change(u)
		return &controllerv1.ProbeUplinks{Uplinks: []*controllerv1.ProbeUplink{u, u}}
	}
	for name, c := range map[string]struct {
		change func(*controllerv1.ProbeUplink)
		want   int
	}{
		"good, twice":   {func(*controllerv1.ProbeUplink) {}, 1},
		"a short MAC":   {func(u *controllerv1.ProbeUplink) { u.Mac = u.Mac[:5] }, 0},
		"a long MTU":    {func(u *controllerv1.ProbeUplink) { u.Mtu = fabric.Longest + 1 }, 0},
		"no VLAN":       {func(u *controllerv1.ProbeUplink) { u.Vlans = []uint32{4095, 1 << 31} }, 0},
		"a long bundle": {func(u *controllerv1.ProbeUplink) { u.Bundle = long }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := ReadUplinks("id", "esx1", uplink(c.change))
			if len(got) != c.want || c.want == 1 && (len(got[0].VLANs) != 1 || len(got[0].Bundle) > mostText) {
				t.Errorf("%+v", got)
			}
		})
	}
	mac := make([]byte, 6)
	for name, m := range map[string]*controllerv1.ProbeTunnel{
		"no address":      {Own: []byte{10, 0, 0, 1}},
		"a short address": {Own: []byte{10, 0, 0}, Peer: []byte{10, 0, 0, 2}},
		"a mapped address": {Own: netip.MustParseAddr("::ffff:10.0.0.1").AsSlice(),
			Peer: netip.MustParseAddr("2001:db8::1").AsSlice()},
		"itself": {Own: []byte{10, 0, 0, 1}, Peer: []byte{10, 0, 0, 1}},
	} {
		t.Run("a tunnel with "+name, func(t *testing.T) {
			if got := ReadTunnels("id", "esx1", []*controllerv1.ProbeTunnel{m}); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	if got := ReadTasks("id", &controllerv1.ProbeTasks{Tasks: []*controllerv1.ProbeTask{{Mac: mac[:4]},
		{Mac: mac, Mtu: 1 << 20}, {Mac: mac}}}); len(got) != 0 {
		t.Errorf("tasks without a MAC, with a long MTU, without VLANs: %+v", got)
	}
	if got := ReadKeys([]*controllerv1.ProbeKey{{Key: mac}}); len(got) != 0 {
		t.Errorf("a short key: %+v", got)
	}
	if _, deaf := ReadResults("id", &controllerv1.ProbeResults{Deaf: []*controllerv1.ProbeDeaf{{From: mac}}}); len(
		deaf) != 0 {
		t.Errorf("a short name: %+v", deaf)
	}
}

// FuzzReadWhatHostsSay: whatever a host says, what is read is within bounds and can be judged.
func FuzzReadWhatHostsSay(f *testing.F) {
	for _, m := range []*controllerv1.FollowProbesRequest{{}, {
		Uplinks: Uplinks([]fabric.Member{{End: end, MTU: 1500, VLANs: []uint16{10}}}),
		Results: Results([]fabric.Result{{Path: fabric.Path{From: end, To: end, VLAN: 10}, State: fabric.Lost}},
			[]fabric.Deaf{{From: end.ID(), To: end.ID()}})}} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &controllerv1.FollowProbesRequest{}
		if proto.Unmarshal(b, m) != nil {
			return
		}
		members := ReadUplinks("id", "esx1", m.GetUplinks())
		results, deaf := ReadResults("id", m.GetResults())
		tunnels := ReadTunnels("id", "esx1", m.GetResults().GetTunnels())
		if len(members) > mostUplinks || len(results) > fabric.MostTasks || len(deaf) > fabric.MostTasks ||
			len(tunnels) > fabric.MostTasks {
			t.Fatal("more is read than there may be")
		}
		v := fabric.Judge(members, results, deaf)
		v.AddTunnels(tunnels)
		for i := range v.Findings {
			if v.Findings[i].Text == "" || v.Findings[i].Remedy == "" {
				t.Errorf("a finding without words: %+v", v.Findings[i])
			}
		}
	})
}
