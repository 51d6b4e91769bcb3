package difftest

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"heddle/internal/model"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const overlaySwitch = `
switches:
- name: s
  tunnel: {endpoints: [{address: 192.0.2.1}], peers: [{address: 192.0.2.2}]}
  uplinks: [{name: u1, device: u1}]
  portGroups:
  - {name: vlan, vlan: {access: 10}}
  - {name: trunk, vlan: {trunk: ["0-4094"]}}
  - {name: web, overlay: {vni: 10}}
  - {name: inside, overlay: {vni: 10}, vlan: {access: 10}}
  - name: nested
    overlay: {vni: 10}
    security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 3}}
  - {name: mirror, overlay: {vni: 20}, security: {promiscuous: accept}}
ports:
- {name: a, switch: s, portGroup: vlan, device: a, mac: "02:00:00:00:00:01"}
- {name: b, switch: s, portGroup: trunk, device: b, mac: "02:00:00:00:00:02"}
- {name: c, switch: s, portGroup: web, device: c, mac: "02:00:00:00:00:03"}
- {name: d, switch: s, portGroup: web, device: d, mac: "02:00:00:00:00:04"}
- {name: e, switch: s, portGroup: inside, device: e, mac: "02:00:00:00:00:05"}
- {name: f, switch: s, portGroup: nested, device: f, mac: "02:00:00:00:00:06"}
- {name: g, switch: s, portGroup: mirror, device: g, mac: "02:00:00:00:00:07"}
- {name: h, switch: s, portGroup: mirror, device: h, mac: "02:00:00:00:00:08"}
`

// TestS84_TheModelAndTheKernelAgreeOnOverlays: random frames from the ports of VLANs and of overlay segments, from the
// uplink and from the tunnel, while the tunnel comes and goes.
func TestS84_TheModelAndTheKernelAgreeOnOverlays(t *testing.T) {
	k := kernel(t)
	cfg, err := spec.Parse("overlay.yaml", []byte(overlaySwitch))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	facts := func(up bool) plan.Facts {
		f := plan.Facts{{Switch: "s", Name: spec.TunnelName}: {Up: up, MTU: 1600,
			Endpoints: []netip.Addr{netip.MustParseAddr("192.0.2.1")}}}
		for _, name := range []string{"u1", "a", "b", "c", "d", "e", "f", "g", "h"} {
			f[plan.PortID{Switch: "s", Name: name}] = plan.Fact{Up: true, MTU: 1500, DeviceMAC: plan.MAC{2, 0, 0, 0, 1}}
		}
		return f
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().Unix()/86400), 84))
	now := 10 * time.Second
	h := model.New(p, facts(true), now)
	if err := k.SetPlan(p, facts(true), now); err != nil {
		t.Fatal(err)
	}
	delivered := map[string]int{}
	for i := range 3000 {
		now += time.Duration(random.IntN(300)) * time.Millisecond
		if i%500 == 499 {
			h.SetPlan(p, facts(i%1000 == 999), now)
			if err := k.SetPlan(p, facts(i%1000 == 999), now); err != nil {
				t.Fatal(err)
			}
		}
		from, vni, frame := overlayFrame(random)
		var want model.Result
		var got Outcome
		if vni != 0 {
			want = h.FrameFrom("s", vni, frame, now)
			got, err = outcome(k.FrameFrom("s", vni, frame, now))
		} else {
			want = h.Frame(plan.PortID{Switch: "s", Name: from}, frame, now)
			got, err = k.Frame(plan.PortID{Switch: "s", Name: from}, frame, now)
		}
		k.last = now
		if err != nil {
			t.Fatal(err)
		}
		if want.Delivered {
			delivered[from]++
		}
		o := Outcome{Delivered: want.Delivered, Reason: want.Reason, Copies: want.Copies, Refused: want.Refused}
		if d := differ(o, got); d != "" {
			t.Fatalf("frame %d from %s, VNI %d, %x: %s", i, from, vni, frame, d)
		}
	}
	for _, name := range []string{"c", "e", "f", "g", spec.TunnelName} {
		if delivered[name] == 0 {
			t.Errorf("no frame from %s was delivered: %v", name, delivered)
		}
	}
	macs, err := k.MACs(now)
	if err != nil {
		t.Fatal(err)
	}
	counters, err := k.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if d := differMACs(h.MACs(), macs) + differCounters(h.Counters(), counters); d != "" {
		t.Error(d)
	}
}

// overlayFrame makes a frame and says where it arrives; with a VNI, from the tunnel.
func overlayFrame(random *rand.Rand) (from string, vni uint32, frame []byte) {
	places := []string{"u1", "a", "b", "c", "d", "e", "f", "f", "g", "h", spec.TunnelName, spec.TunnelName}
	from = places[random.IntN(len(places))]
	mac := func(n int) []byte { return []byte{2, 0, 0, 0, 0, byte(n)} }
	frame = mac(1 + random.IntN(12))
	if random.IntN(4) == 0 {
		frame = []byte{255, 255, 255, 255, 255, 255}
	}
	source := 1 + random.IntN(12)
	if len(from) == 1 && random.IntN(3) > 0 {
		source = int(from[0]-'a') + 1
	}
	frame = append(frame, mac(source)...)
	segments := []struct {
		vni  uint32
		vlan uint16
	}{{10, 0}, {10, 10}, {20, 0}}
	vlan, tagged := []uint16{0, 10, 20}[random.IntN(3)], random.IntN(3) == 0
	if from == spec.TunnelName {
		s := segments[random.IntN(len(segments))]
		vni, vlan, tagged = s.vni, s.vlan, s.vlan != 0
	}
	if tagged {
		frame = binary.BigEndian.AppendUint16(frame, 0x8100)
		frame = binary.BigEndian.AppendUint16(frame, vlan|uint16(random.IntN(8))<<13)
	}
	frame = append(frame, 0x88, 0xb5)
	return from, vni, append(frame, make([]byte, 46)...)
}
