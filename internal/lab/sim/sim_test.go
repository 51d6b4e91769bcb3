package sim

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec"
)

// onePing is the result of one ping in a row.
type onePing struct {
	replies float64
	uplinks uint64
	copies  uint64
	// links has, by the end a link is named by, the frames that leave there and those that come in. Links not named
	// carry none.
	links map[string][2]uint64
}

// In promiscuous mode, N1's request for N2's MAC, which the switch does not know, goes to the promiscuous n2 and out by
// N1's uplink: port number 1 of two uplinks is eno2. The physical switch has N2's MAC behind eno1, the uplink of port
// number 2, and sends the request back there; nothing refuses it, so both promiscuous ports get it. N2 has the request
// twice (4 frames out of vm-n2 below are two requests for N2 and two of its own replies that come back) and answers
// twice. Each answer goes to n1 and out by eno1, comes back by eno2 to both ports, and so is with N1 twice: 2 × 2 = 4
// replies. vm-n1 gets the 4 and its own request once more. eno2 carries the request out and both answers in, eno1 the
// answers out and the request in. 4 copies are made of the request, 2 × 4 of the answers.
var doubled = onePing{4, 3, 12, map[string][2]uint64{
	"esx1/vm-n1": {5, 1}, "esx1/vm-n2": {4, 2}, "esx1/eno1": {2, 1}, "esx1/eno2": {1, 2},
}}

// With one uplink the physical switch knows both MACs behind the port a frame comes from, and drops it. A copy to the
// neighbour and one to the uplink, for the request and for the answer.
var oneWay = onePing{1, 2, 4, map[string][2]uint64{
	"esx1/vm-n1": {1, 1}, "esx1/vm-n2": {1, 1}, "esx1/eno1": {2, 0},
}}

// With the checks on, request and answer still come back by the other uplink. There the sender's port refuses them
// because it is not the port's own uplink, and the receiver's because they are reflections of what this host has just
// sent (S39, S91).
var checked = onePing{1, 2, 4, map[string][2]uint64{
	"esx1/vm-n1": {1, 1}, "esx1/vm-n2": {1, 1}, "esx1/eno1": {1, 1}, "esx1/eno2": {1, 1},
}}

// With MAC learning, each frame goes to the one port behind which its destination was learned.
var direct = onePing{1, 0, 2, map[string][2]uint64{"esx1/vm-n1": {1, 1}, "esx1/vm-n2": {1, 1}}}

// On two hosts every frame takes the wire: out by the sender's uplink, port number 1 on its host and so eno2, and in by
// the other's. It comes in where N2's MAC is, once, whatever the policy.
var apart = onePing{1, 2, 4, map[string][2]uint64{
	"esx1/vm-n1": {1, 1}, "esx2/vm-n2": {1, 1}, "esx1/eno2": {1, 1}, "esx2/eno2": {1, 1},
}}

func TestS91_RepliesAndFramesOfOnePingBetweenNestedHosts(t *testing.T) {
	expectOnePing(t, experiment.Nested, map[string]onePing{
		"promiscuous-dual": doubled, "promiscuous-single": oneWay, "promiscuous-dual-checked": checked,
		// A standard switch knows the MACs of its own ports, here the nested hosts' adapters, and no more: the same as
		// a distributed one that does not learn.
		"standard-promiscuous": doubled,
		"mac-learning-dual":    direct, "mac-learning-single": direct,
		"two-hosts-promiscuous": apart, "two-hosts-mac-learning": apart,
	})
}

func TestPlacementDecidesWhichLinksAPingTakes(t *testing.T) {
	expectOnePing(t, experiment.Placement, map[string]onePing{
		// Switch A does not know b1, which is on switch B: out by A's uplink, in by B's, and the same way back.
		"different-switch": {1, 2, 4, map[string][2]uint64{
			"esx1/vm-a1": {1, 1}, "esx1/vm-b1": {1, 1}, "esx1/eno1": {1, 1}, "esx1/eno2": {1, 1},
		}},
		// The way from VLAN 10 to VLAN 20 is the router: request and answer both leave in one VLAN and come back in the
		// other.
		"different-vlan": {1, 2, 4, map[string][2]uint64{
			"esx1/vm-a1": {1, 1}, "esx1/vm-a2": {1, 1}, "esx1/eno1": {2, 2}, "gw/eth0": {1, 1}, "gw/eth1": {1, 1},
		}},
		"same-port-group": {1, 0, 2, map[string][2]uint64{"esx1/vm-a1": {1, 1}, "esx1/vm-a3": {1, 1}}},
		"same-vlan":       {1, 0, 2, map[string][2]uint64{"esx1/vm-a1": {1, 1}, "esx1/vm-a4": {1, 1}}},
	})
}

func expectOnePing(t *testing.T, name string, want map[string]onePing) {
	t.Helper()
	e := find(t, name)
	all, err := Experiment(e, Options{Pings: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(want) {
		t.Errorf("%d rows, want %d", len(all), len(want))
	}
	for _, r := range all {
		got := onePing{r.RepliesPerPing, r.UplinkFrames, r.Copies, map[string][2]uint64{}}
		for _, l := range r.Links {
			if l.AtoB+l.BtoA > 0 {
				got.links[l.A] = [2]uint64{l.AtoB, l.BtoA}
			}
		}
		if w := want[r.Row.Name]; !reflect.DeepEqual(got, w) {
			t.Errorf("%s: %+v, want %+v", r.Row.Name, got, w)
		}
	}
}

func find(t *testing.T, name string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Every ping has the same result: nothing is learned or forgotten in between.
func TestEveryPingIsLikeTheFirst(t *testing.T) {
	for _, name := range experiment.Names() {
		e := find(t, name)
		one, err := Experiment(e, Options{Pings: 1})
		if err != nil {
			t.Fatal(err)
		}
		all, err := Experiment(e, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range one {
			a, b := one[i], all[i]
			if b.Pings != defaultPings || a.RepliesPerPing != b.RepliesPerPing ||
				a.UplinkFrames*defaultPings != b.UplinkFrames || a.Copies*defaultPings != b.Copies {
				t.Errorf("%s: %d pings gave %+v, one gave %+v", a.Row.Name, b.Pings, b, a)
			}
			for k := range a.Links {
				a.Links[k].AtoB *= defaultPings
				a.Links[k].BtoA *= defaultPings
			}
			if !slices.Equal(a.Links, b.Links) {
				t.Errorf("%s: links %v, want %d times those of one ping, %v", a.Row.Name, b.Links, defaultPings,
					a.Links)
			}
		}
	}
}

func TestManyPingsAreNoStorm(t *testing.T) {
	e := find(t, experiment.Nested)
	all, err := Experiment(e, Options{Pings: 2000, Rows: []string{"promiscuous-dual"}})
	if err != nil || all[0].UplinkFrames != 6000 {
		t.Errorf("2000 pings: %+v, %v", all, err)
	}
}

// tap notes what passes in a world.
type tap struct {
	node
	w   *world
	log *[]string
}

func (p tap) receive(d *device, frame []byte) {
	*p.log = append(*p.log, p.w.loop.now.String()+" "+d.end.String()+" "+string(frame))
	p.node.receive(d, frame)
}

func TestTwoRunsAreEqualFrameByFrame(t *testing.T) {
	for _, name := range experiment.Names() {
		for _, row := range find(t, name).Rows {
			var logs [2][]string
			for i := range logs {
				w, err := newWorld(row.Scenario)
				if err != nil {
					t.Fatal(err)
				}
				for d := range maps.Values(w.byEnd) {
					if d.node != nil {
						d.node = tap{d.node, w, &logs[i]}
					}
				}
				if _, err := w.ping(w.stacks[row.From.Node], row.From.Address, row.To.Address, 5,
					pingInterval); err != nil {
					t.Fatal(err)
				}
			}
			if len(logs[0]) < 20 || !slices.Equal(logs[0], logs[1]) {
				t.Errorf("%s: two runs of %d and %d frames differ", row.Name, len(logs[0]), len(logs[1]))
			}
		}
	}
}

func TestBadExperimentsSayWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*experiment.Row)
		o      Options
		says   string
	}{
		"row":   {nil, Options{Rows: []string{"nonsense"}}, "no row"},
		"pings": {nil, Options{Pings: 1 << 16}, "want 1 to"},
		"from": {func(r *experiment.Row) { r.From.Address = r.To.Address }, Options{},
			"no interface with the address"},
		"to":     {func(r *experiment.Row) { r.To.Node = "esx1" }, Options{}, "no interface with the address"},
		"family": {func(r *experiment.Row) { r.To.Address = addr("fd00::1") }, Options{}, "IPv4 only"},
		"silence": {func(r *experiment.Row) { r.Scenario.Host("esx1").Config.Ports[1].Blocked = ptr(true) }, Options{},
			"without answer"},
		"config": {func(r *experiment.Row) { r.Scenario.Host("esx1").Config.Ports[1].Switch = "nonsense" }, Options{},
			"esx1"},
		"adapter": {func(r *experiment.Row) { r.Scenario.Host("n1").NICs[0].Port = "nonsense" }, Options{},
			`no port "nonsense"`},
	} {
		t.Run(name, func(t *testing.T) {
			e := find(t, experiment.Nested)
			e.Rows = e.Rows[:1]
			if c.change != nil {
				c.change(&e.Rows[0])
			}
			if _, err := Experiment(e, c.o); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v, want %q", name, err, c.says)
			}
		})
	}
}

func ptr[T any](v T) *T { return &v }

// Two cables between the same two physical switches are a loop: a frame that is flooded once circulates for ever.
func TestAStormIsReportedAndEnds(t *testing.T) {
	e := find(t, experiment.Nested)
	row := &e.Rows[0]
	s := row.Scenario
	s.Switches = append(s.Switches, scenario.Switch{Name: "second", Kind: scenario.Bridge})
	for _, device := range []string{"x1", "x2"} {
		s.Links = append(s.Links, scenario.Link{
			A: scenario.End{Node: "tor", Device: device}, B: scenario.End{Node: "second", Device: device}, MTU: 1500,
		})
	}
	_, err := Experiment(e, Options{Rows: []string{row.Name}})
	if !errors.Is(err, ErrStorm) || !strings.Contains(err.Error(), row.Name) {
		t.Errorf("Experiment = %v, want that frames circle in row %s", err, row.Name)
	}
}

// A guest under QEMU cannot be seen from the host: its port needs its MAC, and gets the frames of others only by
// policy.
func TestQEMUGuestIsNotSeen(t *testing.T) {
	s := find(t, experiment.Placement).Rows[0].Scenario
	s.VMs[0].Kind = scenario.QEMU
	w, err := newWorld(s)
	if err != nil {
		t.Fatal(err)
	}
	f := portFact(w.device("esx1", "vm-a1"))
	if !f.Up || !f.SeenMAC.IsZero() || f.Promiscuous != 0 {
		t.Errorf("fact of a QEMU guest's port: %+v", f)
	}
	if f := portFact(w.device("esx1", "vm-a3")); f.SeenMAC != s.VMs[2].MAC {
		t.Errorf("fact of another guest's port: %+v, want MAC %s", f, s.VMs[2].MAC)
	}
}

func TestHostInterfaceKeepsAConfiguredMAC(t *testing.T) {
	s := find(t, experiment.Nested).Rows[0].Scenario
	ports := s.Host("n1").Config.Ports
	ports[0].MAC = "02:00:00:00:00:99"
	w, err := newWorld(s)
	if err != nil {
		t.Fatal(err)
	}
	one, other := w.device("n1", "vmk0"), w.device("n2", "vmk0")
	if one.mac.String() != ports[0].MAC || other.mac.IsZero() || other.mac.IsGroup() ||
		ports[0].ActualRole() != spec.Host {
		t.Errorf("host interfaces have %s and %s", one.mac, other.mac)
	}
}

// A router whose interfaces are on ports of a host, such as a virtual firewall, connects two VLANs without a frame
// leaving the host.
func TestARouterOnPortsKeepsTrafficInTheHost(t *testing.T) {
	s, err := scenario.Parse("x.yaml", []byte(`name: vfw
hosts:
  - name: esx1
    config:
      switches:
        - name: lab
          kind: distributed
          uplinks: [{name: uplink1, device: eno1}]
          portGroups: [{name: inside, vlan: {access: 10}}, {name: outside, vlan: {access: 20}}]
      ports:
        - {name: a, switch: lab, portGroup: inside, device: vm-a}
        - {name: b, switch: lab, portGroup: outside, device: vm-b}
        - {name: fw0, switch: lab, portGroup: inside, device: vm-fw0}
        - {name: fw1, switch: lab, portGroup: outside, device: vm-fw1}
vms:
  - {name: a, host: esx1, addresses: [192.0.2.1/24], gateway: 192.0.2.254}
  - {name: b, host: esx1, addresses: [198.51.100.1/24], gateway: 198.51.100.254}
switches: [{name: tor}]
routers:
  - name: fw
    interfaces:
      - {device: inside, host: esx1, port: fw0, addresses: [192.0.2.254/24]}
      - {device: outside, host: esx1, port: fw1, addresses: [198.51.100.254/24]}
links: [{a: esx1/eno1, b: tor/p1}]
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Experiment(&experiment.Experiment{Name: "x", Rows: []experiment.Row{{
		Name: "through", Scenario: s, From: experiment.Endpoint{Node: "a", Address: addr("192.0.2.1")},
		To:      experiment.Endpoint{Node: "b", Address: addr("198.51.100.1")},
		Counted: []experiment.Uplink{{Host: "esx1", Switch: "lab", Uplink: "uplink1"}},
	}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	// Request and answer each go to one adapter of the router and from the other to the VM: four copies.
	if m := all[0]; m.RepliesPerPing != 1 || m.UplinkFrames != 0 || m.Copies != 4*uint64(m.Pings) {
		t.Errorf("%.1f replies to %d pings, %d frames on the uplink, %d copies", m.RepliesPerPing, m.Pings,
			m.UplinkFrames, m.Copies)
	}
}
