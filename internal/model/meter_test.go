package model

import (
	"testing"
	"time"

	"heddle/internal/flow"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// meteredHost is a switch with two ports in VLAN 5 that are metered in both directions.
func meteredHost(t *testing.T, rate int) (*Host, plan.PortID, plan.PortID) {
	t.Helper()
	cfg, err := spec.Parse("test.yaml", []byte(`
switches:
- name: s
  defaults: {vlan: {access: 5}, monitoring: {ipfix: true}}
  portGroups: [{name: g}]
ports:
- {name: a, switch: s, portGroup: g, mac: "02:00:00:00:00:01"}
- {name: b, switch: s, portGroup: g, mac: "02:00:00:00:00:02"}
`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Resolve(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Switches[0].IPFIX.SamplingRate = rate
	a, b := plan.PortID{Switch: "s", Name: "a"}, plan.PortID{Switch: "s", Name: "b"}
	return New(p, plan.Facts{a: {Up: true, MTU: 1500}, b: {Up: true, MTU: 1500}}, 0), a, b
}

// udpFrame is 100 bytes of a UDP packet and 6 of padding from port a to port b.
func udpFrame() []byte {
	f := make([]byte, 14+100+6)
	copy(f, []byte{2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 7, 0, 100, 0, 0, 0, 0, 63, 17, 0, 0, 10, 0, 0, 1, 10,
		0, 0, 2, 1, 2, 3, 4})
	return f
}

func TestD6_ThePaddingOfAFrameIsNoPartOfItsPacket(t *testing.T) {
	h, a, b := meteredHost(t, 0)
	h.Frame(a, udpFrame(), 3*time.Second)
	h.Frame(a, udpFrame(), 4*time.Second)
	got := h.TakeFlows()
	want := MeteredCounts{Counts: flow.Counts{Packets: 2, Bytes: 200, FrameBytes: 240, First: 3000, Last: 4000, TOS: 7,
		MinTTL: 63, MaxTTL: 63}, In: a, Out: b}
	key := flow.Key{VLAN: 5, EtherType: flow.IPv4, Protocol: 17, SrcMAC: plan.MAC{2, 0, 0, 0, 0, 1},
		DstMAC: plan.MAC{2, 0, 0, 0, 0, 2}, SrcPort: 258, DstPort: 772}
	copy(key.Src[:], []byte{10, 0, 0, 1})
	copy(key.Dst[:], []byte{10, 0, 0, 2})
	if in := got[Metered{a, key}]; in != want {
		t.Errorf("ingress %+v, want %+v", in, want)
	}
	key.Direction = flow.Egress
	if out := got[Metered{b, key}]; out != want || len(got) != 2 {
		t.Errorf("egress %+v of %d flows, want %+v", out, len(got), want)
	}
	if left := h.TakeFlows(); len(left) != 0 {
		t.Errorf("what was taken is there still: %v", left)
	}
}

func TestS66_TheModelMetersOnePacketOfNPlusOne(t *testing.T) {
	for rate, want := range map[int]uint64{0: 10, 1: 5, 2: 4, 9: 1, 100: 1} {
		h, a, _ := meteredHost(t, rate)
		for range 10 {
			h.Frame(a, udpFrame(), time.Second)
		}
		for m, c := range h.TakeFlows() {
			if c.Packets != want {
				t.Errorf("rate %d: %d packets at %s, want %d", rate, c.Packets, m.At, want)
			}
		}
	}
}
