package kerneltest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"heddle/internal/dataplane"
	"heddle/internal/flow"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/test/testkit"
)

// meterRig is the recording build with a configuration in force whose flows are looked at.
type meterRig struct {
	t     *testing.T
	rec   *dataplane.Recorder
	plan  *plan.Plan
	facts plan.Facts
	start time.Duration // when the test began; flows' times are relative to it
	now   time.Duration
	text  string
}

// newMeterRig reads a configuration as newRig does.
func newMeterRig(t *testing.T, text string, ports ...string) *meterRig {
	t.Helper()
	testkit.Root(t)
	l, err := loaded()
	if err != nil {
		t.Fatal(err)
	}
	r := &meterRig{t: t, rec: l.rec, start: l.now, now: l.now, text: configText(text, ports)}
	t.Cleanup(func() {
		if err := l.rec.Flows().Drain(func(flow.Batch) error { return nil }); err != nil {
			t.Error(err)
		}
		if err := l.clear(r.now); err != nil {
			t.Error(err)
		}
	})
	r.apply()
	return r
}

func (r *meterRig) apply() {
	r.t.Helper()
	cfg, err := spec.Parse("test.yaml", []byte(r.text))
	if err != nil {
		r.t.Fatal(err)
	}
	if r.plan, err = plan.Resolve(cfg, nil); err != nil {
		r.t.Fatal(err)
	}
	r.facts = plan.Facts{}
	for _, sw := range r.plan.Switches {
		for _, p := range sw.Ports {
			r.facts[p.ID] = plan.Fact{Up: true, MTU: 9000, SeenMAC: p.InitialMAC}
		}
		for _, u := range sw.Uplinks {
			r.facts[u.ID] = plan.Fact{Up: true, MTU: 9000, DeviceMAC: plan.MAC(word(u.Device))}
		}
	}
	if err := r.rec.SetPlan(r.plan, r.facts, r.now); err != nil {
		r.t.Fatal(err)
	}
}

// change replaces a piece of the configuration, which must be in it exactly once.
func (r *meterRig) change(from, to string) {
	r.t.Helper()
	if n := strings.Count(r.text, from); n != 1 {
		r.t.Fatalf("%q is %d times in the configuration", from, n)
	}
	r.text = strings.Replace(r.text, from, to, 1)
	r.apply()
}

// frame gives a frame to a port or uplink; it must be delivered. The clock advances by a millisecond.
func (r *meterRig) frame(at string, frame []byte) {
	r.t.Helper()
	r.now += time.Millisecond
	got, err := r.rec.Frame(plan.PortID{Switch: "s", Name: at}, frame, r.now)
	if err != nil {
		r.t.Fatal(err)
	}
	if !got.Delivered {
		r.t.Fatalf("dropped: %v", got.Reason)
	}
}

// drained is what was counted since the last call, in a form for comparison: by point and flow.
func (r *meterRig) drained() map[string]string {
	r.t.Helper()
	counts := map[flow.Key]flow.Counts{}
	err := r.rec.Flows().Drain(func(b flow.Batch) error {
		for i, k := range b.Keys {
			c := counts[k] // counted in a table before the flow got a fast slot
			c.Add(b.Counts[i])
			counts[k] = c
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	points, all := r.rec.Flows().Points(), map[string]string{}
	for k, c := range counts {
		name := flowText(points, k)
		if _, ok := all[name]; ok {
			r.t.Errorf("%s comes twice", name)
		}
		all[name] = r.countText(points, c)
	}
	return all
}

// flowText is "in vm1 vlan 5 02:…:02<02:…:01 6 10.0.0.1:1000>10.0.0.2:80".
func flowText(points flow.Points, k flow.Key) string {
	direction := map[flow.Direction]string{flow.Ingress: "in", flow.Egress: "out"}[k.Direction]
	text := fmt.Sprintf("%s %s", direction, points[k.Point].ID.Name)
	if k.VLAN != 0 {
		text += fmt.Sprintf(" vlan %d", k.VLAN&^flow.AD)
		if k.VLAN&flow.AD != 0 {
			text += "ad"
		}
	}
	text += fmt.Sprintf(" %s>%s", macText(k.SrcMAC), macText(k.DstMAC))
	src, dst := k.Addresses()
	if !src.IsValid() {
		return text + fmt.Sprintf(" type %04x", k.EtherType)
	}
	return text + fmt.Sprintf(" %d %s.%d>%s.%d", k.Protocol, src, k.SrcPort, dst, k.DstPort)
}

func macText(m plan.MAC) string { return strings.TrimPrefix(m.String(), "02:00:00:00:00:") }

// countText is "2 packets 100/128 bytes vm1>vm2 flags 12 tos 0 ttl 64-64 t 1-2", times in milliseconds after the test
// began.
func (r *meterRig) countText(points flow.Points, c flow.Counts) string {
	text := fmt.Sprintf("%d packets %d/%d bytes %s>%s", c.Packets, c.Bytes, c.FrameBytes, points[c.In].ID.Name,
		points[c.Out].ID.Name)
	if c.TCPFlags != 0 {
		text += fmt.Sprintf(" flags %x", c.TCPFlags)
	}
	if c.TOS != 0 {
		text += fmt.Sprintf(" tos %x", c.TOS)
	}
	if c.MaxTTL != 0 {
		text += fmt.Sprintf(" ttl %d-%d", c.MinTTL, c.MaxTTL)
	}
	start := r.start.Milliseconds()
	return text + fmt.Sprintf(" t %d-%d", c.First-start, c.Last-start)
}

// expect drains and compares.
func (r *meterRig) expect(want map[string]string) {
	r.t.Helper()
	got := r.drained()
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if got[k] != want[k] {
			r.t.Errorf("%s:\n got %q\nwant %q", k, got[k], want[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[k]; !ok {
			r.t.Errorf("unexpected flow %s: %s", k, got[k])
		}
	}
}

// packet serializes layers below an Ethernet header from vm1 to vm2, of which next is the type.
func packet(t *testing.T, next layers.EthernetType, l ...gopacket.SerializableLayer) []byte {
	t.Helper()
	eth := &layers.Ethernet{SrcMAC: word("vm1"), DstMAC: word("vm2"), EthernetType: next}
	for _, x := range l {
		if s, ok := x.(interface {
			SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
		}); ok {
			for _, n := range l {
				if net, ok := n.(gopacket.NetworkLayer); ok {
					if err := s.SetNetworkLayerForChecksum(net); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{FixLengths: true},
		append([]gopacket.SerializableLayer{eth}, l...)...); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
