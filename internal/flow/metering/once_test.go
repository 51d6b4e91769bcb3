package metering

import (
	"errors"
	"testing"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/flow/meter"
	"heddle/internal/plan"
)

// Packets between two metered ports are seen at both. The sum of a view has each packet once, whatever the filter, and
// whichever ports are metered.
func TestTheSumOfTopHasEachPacketOnce(t *testing.T) {
	out := func(k flow.Key, point uint16) flow.Key {
		k.Point, k.Direction = point, flow.Egress
		return k
	}
	toMany := flow.Key{Point: 1, EtherType: flow.IPv4, Protocol: 17, DstMAC: plan.MAC{1, 0, 0x5e, 0, 0, 1},
		DstPort: 5353, VLAN: 100}
	toOne := flow.Key{Point: 1, EtherType: flow.IPv4, Protocol: 6, DstMAC: plan.MAC{2, 0, 0, 0, 0, 2}, DstPort: 443,
		VLAN: 100}
	for name, c := range map[string]struct {
		metered []string
		only    api.FlowFilter
		counted []flow.Key // each has one packet
		active  int
		want    float64 // packets
	}{
		"both ports are metered": {[]string{"vm1", "vm2"}, api.FlowFilter{}, []flow.Key{toOne, out(toOne, 2)},
			2, 1},
		"only where it goes out": {[]string{"vm2"}, api.FlowFilter{}, []flow.Key{out(toOne, 2)}, 1, 1},
		"only where it comes in": {[]string{"vm1"}, api.FlowFilter{}, []flow.Key{toOne}, 1, 1},
		"who asks for the receiver": {[]string{"vm1", "vm2"}, api.FlowFilter{Port: "vm2"},
			[]flow.Key{toOne, out(toOne, 2)}, 1, 1},
		"who asks for egress": {[]string{"vm1", "vm2"}, api.FlowFilter{Direction: "egress"},
			[]flow.Key{toOne, out(toOne, 2)}, 1, 1},
		"who asks for a port group": {[]string{"vm1", "vm2"}, api.FlowFilter{PortGroup: "db"},
			[]flow.Key{toOne, out(toOne, 2)}, 1, 1},
		"for many, all metered": {[]string{"vm1", "vm2", "u1"}, api.FlowFilter{},
			[]flow.Key{toMany, out(toMany, 2), out(toMany, 3)}, 3, 1},
		"for many, metered at receivers": {[]string{"vm2", "u1"}, api.FlowFilter{},
			[]flow.Key{out(toMany, 2), out(toMany, 3)}, 2, 1},
		"two flows to one port": {[]string{"vm2"}, api.FlowFilter{},
			[]flow.Key{out(toOne, 2), out(toMany, 2)}, 2, 2},
		"one flow each way": {[]string{"vm1", "vm2"}, api.FlowFilter{},
			[]flow.Key{toOne, out(toOne, 2), back(toOne), out(back(toOne), 1)}, 4, 2},
		"what nobody metered where it was": {[]string{"vm1"}, api.FlowFilter{}, []flow.Key{out(back(toOne), 1)}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t)
			g.settle(idle, c.metered...)
			pass := func() {
				for _, k := range c.counted {
					g.src.count(k, 1)
					if k.SrcPort != 0 { // back
						g.src.pending[k].In = 2
					}
				}
			}
			g.src.drain = pass
			g.await("flows", func() bool { l, _ := g.Flows(query()); return l.Total == len(c.counted) })
			enough := errors.New("enough")
			views := 0
			err := g.Top(t.Context(), api.FlowTopQuery{FlowFilter: c.only, Sort: "packets", Limit: 9, Interval: every},
				func(f api.FlowTop) error {
					if len(f.Flows) == 0 || f.Active != c.active {
						return nil
					}
					each := f.Flows[0].Rates.Packets // every flow has the same rate
					if ratio := f.Sum.Packets / each; ratio < 0.999*c.want || ratio > 1.001*c.want || f.Sum.Bits <= 0 {
						t.Errorf("the sum is of %v packets, want %v: %+v", ratio, c.want, f)
					}
					if views++; views == 3 {
						return enough
					}
					return nil
				})
			if !errors.Is(err, enough) {
				t.Error(err)
			}
		})
	}
}

// back is the opposite flow, as it comes in at vm2.
func back(k flow.Key) flow.Key {
	k.Point, k.SrcMAC, k.DstMAC, k.SrcPort, k.DstPort = 2, k.DstMAC, k.SrcMAC, k.DstPort, k.SrcPort
	return k
}

// Flows for many cost bounded memory.
func TestCopiesThatAreRememberedAreBounded(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm2")
	m, err := newMatcher(api.FlowFilter{})
	if err != nil {
		t.Fatal(err)
	}
	o := g.once(m, g.src.Points())
	f := meter.Flow{Switch: "lab", PacketRate: 1, Key: flow.Key{Point: 2, Direction: flow.Egress, DstMAC: plan.MAC{1}}}
	for n := range mostCopies + 1000 {
		f.Key.SrcPort, f.Key.VLAN = uint16(n), uint16(n>>16)
		o.add(&f)
	}
	if len(o.copies) != mostCopies || o.sum.Packets != mostCopies+1000 {
		t.Errorf("%d copies are remembered, the sum is %v", len(o.copies), o.sum.Packets)
	}
}
