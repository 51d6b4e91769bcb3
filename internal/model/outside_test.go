package model_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/model"
	"heddle/internal/overlay"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const outsideText = `
switches:
- name: s
  tunnel:
    endpoints: [{address: 192.0.2.1}]
    peers: [{name: h2, address: 198.51.100.2, macs: [{vni: 10, mac: "02:00:00:00:02:07"}]}]
  portGroups:
  - {name: web, overlay: {vni: 10}}
  - {name: nested, overlay: {vni: 10}, security: {forgedTransmits: accept, macLearning: {enabled: true, ageing: 5m}}}
  - {name: mirror, overlay: {vni: 10}, security: {promiscuous: accept}}
ports:
- {name: a, switch: s, portGroup: web, device: a, mac: "02:00:00:00:00:01"}
- {name: nested, switch: s, portGroup: nested, device: b, mac: "02:00:00:00:00:02"}
- {name: mirror, switch: s, portGroup: mirror, device: c, mac: "02:00:00:00:00:03"}
- {name: slow, switch: s, portGroup: web, device: d, mac: "02:00:00:00:00:04"}
`

// outsideHost is a host with that switch, of which h2's endpoint is known.
func outsideHost(t *testing.T) *model.Host {
	t.Helper()
	cfg, err := spec.Parse("outside.yaml", []byte(outsideText))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range p.Switches[0].Ports {
		if port.ID.Name == "slow" {
			policy := *port.Policy
			policy.StormControl.UnknownUnicast.V = 1
			port.Policy = &policy
		}
	}
	facts := plan.Facts{p.Switches[0].Tunnel.ID: {Up: true, MTU: 1600, Endpoints: []netip.Addr{addr("192.0.2.1")}}}
	for _, port := range p.Switches[0].Ports {
		facts[port.ID] = plan.Fact{Up: true, MTU: 1500, SeenMAC: port.InitialMAC}
	}
	h := model.New(p, facts, 0)
	h.Explain(true)
	h.SetReach(map[string]overlay.Reach{"s": overlay.Of(p.Switches[0])})
	h.SetPlan(p, facts, 0)
	return h
}

// TestS190_UnicastToWhatTheTunnelKnowsIsForTheTunnelAlone: ports that want unknown destinations get no copy of a frame
// whose destination is known behind an endpoint of another host, and it costs nothing of the sender's storm control.
func TestS190_UnicastToWhatTheTunnelKnowsIsForTheTunnelAlone(t *testing.T) {
	h, now := outsideHost(t), time.Hour
	from := func(port string, to byte) string {
		t.Helper()
		frame := inner(to, 0, 100)
		copy(frame[6:], []byte{2, 0, 0, 0, 0, map[string]byte{"a": 1, "slow": 4}[port]})
		r := h.Frame(plan.PortID{Switch: "s", Name: port}, frame, now)
		var got []string
		for _, c := range r.Copies {
			got = append(got, c.To.Name)
		}
		said := slices.ContainsFunc(r.Steps, func(s model.Step) bool { return strings.Contains(s.Text, "of host h2") })
		if said != r.Outside.IsValid() {
			t.Errorf("the steps %v, known behind %v", r.Steps, r.Outside)
		}
		return strings.Join(got, " ")
	}
	hears := func(source byte) {
		t.Helper()
		frame := inner(255, 0, 100)
		copy(frame[6:], []byte{2, 0, 0, 0, 2, source})
		if a, _ := h.Arrive("s", addr("198.51.100.2"), 10, frame, now); a.Reason != 0 {
			t.Fatalf("a frame of the other host: %v", a.Reason)
		}
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: copies for %q, want %q", what, got, want)
		}
	}
	const all, alone = "nested mirror tunnel", "mirror tunnel"
	check("unknown", from("a", 9), all)
	check("located by the file", from("a", 7), alone)
	hears(9)
	check("heard from the other host", from("a", 9), alone)
	for range 3 {
		check("with storm control", from("slow", 9), alone)
	}
	now += 11 * time.Minute
	check("silent for 11 minutes", from("a", 9), all)

	// It moves to this host, is heard once, and is silent for longer than ports remember it.
	hears(9)
	frame := inner(255, 0, 100)
	copy(frame[6:], []byte{2, 0, 0, 0, 2, 9})
	h.Frame(plan.PortID{Switch: "s", Name: "nested"}, frame, now)
	check("heard here", from("a", 9), "nested mirror")
	now += 6 * time.Minute
	check("heard here last, and forgotten", from("a", 9), all)
	h.Crossing("s").Locate(false, []overlay.Location{{Key: overlay.Key{VNI: 10, MAC: plan.MAC{2, 0, 0, 0, 2, 9}},
		Endpoint: addr("198.51.100.2"), Source: overlay.Announced}}, nil)
	check("located by controllers", from("a", 9), alone)
	h.Crossing("s").Locate(false, nil, []overlay.Key{{VNI: 10, MAC: plan.MAC{2, 0, 0, 0, 2, 9}}})
	check("located no more", from("a", 9), all)
}
