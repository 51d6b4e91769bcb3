package fabric

import (
	"strings"
	"testing"
	"time"
)

// minute is within what time a fault has to be found, and to be gone after a repair.
const minute = time.Minute

// A fault of the physical network is found within a minute and named with its remedy; it is gone within a minute of the
// repair.
func TestS109_FaultsOfThePhysicalNetworkAreNamed(t *testing.T) {
	vlans := []uint16{0, 10, 20, 30}
	for name, c := range map[string]struct {
		hosts  int
		breaks func(*network)
		want   []string // parts of the only finding; nil where all is well
	}{
		"well": {4, func(*network) {}, nil},
		"one VLAN is missing at one port": {4, func(n *network) { n.jack(2, 1).vlans = without(vlans, 30) },
			[]string{"vlan-missing: VLAN 30 does not pass between h2/uplink1 and ",
				"add it to the trunk of port 2 of tor-a"}},
		"two VLANs are missing at one port": {4, func(n *network) { n.jack(2, 1).vlans = without(vlans, 20, 30) },
			[]string{"VLANs 20, 30 do not pass between h2/uplink1 and", "add them to the trunk of port 2 of tor-a"}},
		"two hosts": {2, func(n *network) { n.jack(1, 1).vlans = without(vlans, 30) },
			[]string{"VLAN 30 does not pass between h1/uplink1 and", "port 1 of tor-a"}},
		"the native VLAN": {3, func(n *network) { n.jack(1, 2).vlans = without(vlans, 0) },
			[]string{"untagged frames do not pass between h1/uplink2", "native VLAN", "port 1 of tor-b"}},
		"between the switches": {6, func(n *network) { n.cables[0].cut = map[uint16]bool{20: true} },
			[]string{"VLAN 20 does not pass between uplink1 and uplink2 of switch prod, although other VLANs do",
				"links between their physical switches"}},
		"a whole port": {4, func(n *network) { n.jack(3, 2).vlans = map[uint16]bool{} },
			[]string{"nothing-passes: nothing passes at h3/uplink2 in any of its VLANs (untagged, 10, 20, 30)",
				"port 3 of tor-b"}},
		"one way": {4, func(n *network) { n.jack(4, 1).deaf = true },
			[]string{"one-way: VLANs untagged, 10, 20, 30 do not pass between h4/uplink1 and", "port 4 of tor-a"}},
		"MTU of a port": {4, func(n *network) { n.jack(2, 2).mtu = 1400 },
			[]string{"mtu: packets of 1500 bytes, the MTU of switch prod, do not pass between h2/uplink2 and",
				"those up to 1400 do", "raise the MTU to at least 1500 at port 2 of tor-b"}},
		"MTU between the switches": {4, func(n *network) { n.cables[0].mtu = 1300 },
			[]string{"packets of 1500 bytes", "h1/uplink1, h2/uplink1, h3/uplink1 and h4/uplink1"}},
		"separate networks": {4, func(n *network) { n.cables = nil },
			[]string{"apart: uplink1 and uplink2 of switch prod do not reach each other in any VLAN",
				"separate networks"}},
		"IP hash against no channel": {3, func(n *network) { n.bundle("h2") },
			[]string{"no-bundle: h2/uplink1 and h2/uplink2 expect a bundle",
				"make a port channel of port 2 of tor-a and " +
					"port 2 of tor-b"}},
		"IP hash and a channel": {3, func(n *network) { n.bundle("h2"); n.channel(2) }, nil},
		"a channel against no IP hash": {3, func(n *network) { n.channel(2) },
			[]string{"bundle: h2/uplink1 and h2/uplink2 do not hear each other", "port channel", "ip-hash"}},
		"one host": {1, func(n *network) { n.jack(1, 2).vlans = without(vlans, 20) },
			[]string{"VLAN 20 does not pass between", "uplink1", "uplink2"}},
	} {
		t.Run(name, func(t *testing.T) {
			n := racks(t, c.hosts, vlans...)
			if v := n.run(minute); len(v.Findings) > 0 || v.Waiting > 0 || v.Passing != v.Paths {
				t.Fatalf("before the fault: %q %+v", said(v), v)
			}
			before := *n
			c.breaks(n)
			v := n.run(minute)
			list := said(v)
			if len(c.want) == 0 != (len(list) == 0) || len(list) > 1 {
				t.Fatalf("found %q", list)
			}
			for _, part := range c.want {
				if !strings.Contains(list[0], part) {
					t.Errorf("found %q, without %q", list[0], part)
				}
			}
			fresh := racks(t, c.hosts, vlans...)
			n.jacks, n.cables, n.members = fresh.jacks, fresh.cables, before.members
			for i := range n.members {
				n.members[i].Bundle = ""
			}
			if v := n.run(minute); len(v.Findings) > 0 {
				t.Errorf("after the repair: %q", said(v))
			}
		})
	}
}

// bundle makes a host's team one with IP hash.
func (n *network) bundle(name string) {
	for i := range n.members {
		if n.members[i].Name == name {
			n.members[i].Bundle = "IP hash"
		}
	}
}

// channel has the physical network bundle the ports of a host, as over a pair of switches that act as one.
func (n *network) channel(host int) {
	for _, u := range []int{1, 2} {
		j := n.jack(host, u)
		j.channel, j.sw = "channel", "tor-a"
	}
}

// In racks whose hosts lie in any order, a VLAN that a cable between racks lacks is one finding.
func TestS109_AVLANBetweenRacksIsOneFinding(t *testing.T) {
	n := racks(t, 24, 10, 20)
	n.cables = append(n.cables, &cable{a: "tor-a", b: "spine", mtu: 9216}, &cable{a: "tor-c", b: "spine", mtu: 9216})
	for i := 1; i <= 24; i++ {
		if i%3 == 0 {
			n.jack(i, 1).sw, n.jack(i, 2).sw = "tor-c", "tor-c"
		}
	}
	n.run(minute)
	n.cables[1].cut = map[uint16]bool{20: true}
	v := n.run(minute)
	if list := said(v); len(list) != 1 || !strings.Contains(list[0], "VLAN 20 does not pass between h12/uplink1") ||
		!strings.Contains(list[0], "links between the physical switches") || len(v.Findings[0].Ends) != 16 {
		t.Errorf("found %q", list)
	}
}

func TestS109_LostAndSlowProbesAreNoted(t *testing.T) {
	n := racks(t, 3, 10)
	n.jack(1, 1).loss = 9
	v := n.run(30 * minute)
	if list := said(v); len(list) == 0 || !strings.Contains(strings.Join(list, "\n"), "% of the probes get lost") ||
		!v.Findings[0].Note {
		t.Errorf("found %q", list)
	}
}

// A thousand hosts with two uplinks and fifty VLANs: what a host sends is bounded and little, and all is looked at
// within a minute.
func TestS109_AThousandHostsProbeLittle(t *testing.T) {
	vlans := make([]uint16, 50)
	for i := range vlans {
		vlans[i] = uint16(100 + i)
	}
	n := racks(t, 1000, vlans...)
	l := NewLayout(n.members, 7, nil)
	covered := map[End]map[uint16]int{}
	for _, h := range l.Hosts() {
		tasks := l.Tasks(h)
		if len(tasks) > 250 {
			t.Fatalf("host %s probes %d paths", h, len(tasks))
		}
		for _, k := range tasks {
			for _, e := range []End{k.From, k.To} {
				if covered[e] == nil {
					covered[e] = map[uint16]int{}
				}
				covered[e][k.VLAN]++
			}
		}
	}
	for _, m := range n.members {
		for _, v := range m.VLANs {
			if covered[m.End][v] < 4 {
				t.Fatalf("%s has %d paths in VLAN %d", m.What(), covered[m.End][v], v)
			}
		}
	}
	m := NewMachine()
	m.Set(l.Tasks("id1"), n.now)
	sent, size := 0, 0
	for at := n.now; at.Before(n.now.Add(11 * minute)); at = at.Add(50 * time.Millisecond) {
		for _, s := range m.Due(at) {
			if at.Sub(n.now) > minute {
				sent, size = sent+1, size+s.Size
			}
			m.Echo(s.Probe.Answer(), s.Path.From.Uplink, at)
		}
	}
	if rate := float64(sent) / 600; rate > 20 {
		t.Errorf("%.1f probes per second", rate)
	}
	t.Logf("%.1f probes and %.0f bytes per second and host", float64(sent)/600, float64(size)/600)
}

func TestS109_ProbesAreSigned(t *testing.T) {
	now := time.Unix(1e9, 0)
	keys := Secrets([]byte("the cluster's"), now)
	p := Probe{VLAN: 30, Size: 1500, Number: 7, From: End{"a", "s", "u"}.ID(), To: End{"b", "s", "u"}.ID()}
	b := keys[0].Append(nil, p)
	if len(b) != 1500 {
		t.Fatalf("%d bytes", len(b))
	}
	if got, err := Read(b, keys); err != nil || got != p {
		t.Errorf("%v: %+v", err, got)
	}
	for _, day := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		if _, err := Read(b, Secrets([]byte("the cluster's"), now.Add(day))); err != nil {
			t.Errorf("a day apart: %v", err)
		}
	}
	if _, err := Read(b, Secrets([]byte("the cluster's"), now.Add(72*time.Hour))); err != ErrForged {
		t.Errorf("after three days: %v", err)
	}
	for i := range Shortest {
		bad := append([]byte(nil), b...)
		bad[i] ^= 1
		if _, err := Read(bad, keys); err == nil {
			t.Errorf("byte %d is not signed", i)
		}
	}
	for n := range Shortest {
		if _, err := Read(b[:n], keys); err != ErrForeign {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if _, err := Read(b, Secrets([]byte("another's"), now)); err != ErrForged {
		t.Errorf("another cluster: %v", err)
	}
}

// An echo counts once, and only where it was asked for.
func TestS109_AnEchoCountsOnce(t *testing.T) {
	m, now := NewMachine(), time.Unix(1e9, 0)
	a, b := End{"a", "s", "u1"}, End{"b", "s", "u1"}
	m.Set([]Task{{Path: Path{a, b, 10}, MTU: 1500}}, now)
	now = now.Add(Begin)
	list := m.Due(now)
	if len(list) != 1 {
		t.Fatalf("%d probes", len(list))
	}
	p := list[0].Answer()
	for _, bad := range []Probe{{Number: 99, From: p.From, To: p.To, VLAN: 10}, {Number: p.Number, From: p.To,
		To: p.From, VLAN: 10}, {Number: p.Number, From: p.From, To: p.To, VLAN: 11}} {
		m.Echo(bad, "u1", now)
	}
	if s := m.Results()[0].State; s != Unknown {
		t.Fatalf("a wrong echo counts: %v", s)
	}
	m.Echo(p, "u1", now)
	m.Echo(p, "u1", now)
	if r := m.Results()[0]; r.State != Passes || m.tracks[r.Path].probes != 1 {
		t.Errorf("%+v", r)
	}
}
