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
  - name: hypervisor
    overlay: {vni: 10}
    vlan: {trunk: ["0", "10", "20-21"]}
    security: {forgedTransmits: accept, macLearning: {enabled: true, limit: 4}}
  - {name: tagged, overlay: {vni: 10}, vlan: {trunk: ["10", "30"]}}
  - {name: other, overlay: {vni: 20}, vlan: {trunk: ["10"]}}
ports:
- {name: a, switch: s, portGroup: vlan, device: a, mac: "02:00:00:00:00:01"}
- {name: b, switch: s, portGroup: trunk, device: b, mac: "02:00:00:00:00:02"}
- {name: c, switch: s, portGroup: web, device: c, mac: "02:00:00:00:00:03"}
- {name: d, switch: s, portGroup: web, device: d, mac: "02:00:00:00:00:04"}
- {name: e, switch: s, portGroup: inside, device: e, mac: "02:00:00:00:00:05"}
- {name: f, switch: s, portGroup: nested, device: f, mac: "02:00:00:00:00:06"}
- {name: g, switch: s, portGroup: mirror, device: g, mac: "02:00:00:00:00:07"}
- {name: h, switch: s, portGroup: mirror, device: h, mac: "02:00:00:00:00:08"}
- {name: i, switch: s, portGroup: hypervisor, device: i, mac: "02:00:00:00:00:09"}
- {name: j, switch: s, portGroup: hypervisor, device: j, mac: "02:00:00:00:00:0a"}
- {name: k, switch: s, portGroup: tagged, device: k, mac: "02:00:00:00:00:0b"}
- {name: l, switch: s, portGroup: other, device: l, mac: "02:00:00:00:00:0c"}
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
		for _, name := range []string{"u1", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"} {
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
	for _, name := range []string{"c", "e", "f", "g", "i", "k", "l", spec.TunnelName} {
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
	places := []string{"u1", "a", "b", "c", "d", "e", "f", "f", "g", "h", "i", "i", "j", "k", "l", spec.TunnelName,
		spec.TunnelName}
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
	}{{10, 0}, {10, 10}, {20, 0}, {10, 20}, {10, 30}, {20, 10}}
	vlan, tagged := []uint16{0, 10, 20, 21, 30, 1, 2, 3, 4095}[random.IntN(9)], random.IntN(3) == 0
	if from >= "i" && from <= "l" {
		tagged = random.IntN(4) > 0
	}
	if from == spec.TunnelName {
		s := segments[random.IntN(len(segments))]
		vni, vlan, tagged = s.vni, s.vlan, s.vlan != 0
	}
	hidden := random.IntN(8) == 0
	if hidden && from == spec.TunnelName && vlan == 0 { // the recorder takes the priority tag out of the host's copy
		copy(frame, mac(1+random.IntN(12)))
	}
	if tagged || from == spec.TunnelName && hidden {
		protocol := uint16(0x8100)
		if from != spec.TunnelName && random.IntN(12) == 0 {
			protocol = 0x88a8
		}
		frame = binary.BigEndian.AppendUint16(frame, protocol)
		frame = binary.BigEndian.AppendUint16(frame, vlan|uint16(random.IntN(16))<<12)
		if hidden {
			frame = binary.BigEndian.AppendUint16(frame, []uint16{0x8100, 0x88a8}[random.IntN(2)])
			frame = binary.BigEndian.AppendUint16(frame, []uint16{10, 20, 7}[random.IntN(3)])
		}
	}
	frame = append(frame, 0x88, 0xb5)
	frame = append(frame, make([]byte, 46)...)
	if from != spec.TunnelName && random.IntN(20) == 0 {
		frame = frame[:14+random.IntN(12)]
	}
	return from, vni, frame
}
