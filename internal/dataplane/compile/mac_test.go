package compile

import (
	"slices"
	"testing"

	"heddle/internal/observe"
	"heddle/internal/plan"
)

func TestS3_S4_D2_WhoseMACIsWhose(t *testing.T) {
	id := func(name string) plan.PortID { return plan.PortID{Switch: "lab", Name: name} }
	m := func(last byte) plan.MAC { return plan.MAC{2, 0, 0, 0, 0, last} }
	port := func(name string, initial plan.MAC, changes bool) *plan.Port {
		p := &plan.Port{ID: id(name), InitialMAC: initial, Policy: &plan.Effective{}}
		p.Policy.MACChanges.V = changes
		return p
	}
	sw := &plan.Switch{Uplinks: []*plan.Uplink{{ID: id("u1")}}, Ports: []*plan.Port{
		port("same", m(1), false), port("rejected", m(2), false), port("accepted", m(3), true),
		port("late", m(4), true),
		port("thief", m(5), true), port("unknown", plan.MAC{}, false), port("uplinks", m(6), true),
		port("group", m(7), true),
	}}
	facts := plan.Facts{
		id("u1"): {DeviceMAC: m(0xf1)}, id("same"): {SeenMAC: m(1)}, id("rejected"): {SeenMAC: m(0x12)},
		id("accepted"): {SeenMAC: m(0x13)},
		id("late"):     {SeenMAC: m(0x13)}, id("thief"): {SeenMAC: m(1)}, id("unknown"): {SeenMAC: m(0x16)},
		id("uplinks"): {SeenMAC: m(0xf1)},
		id("group"):   {SeenMAC: plan.MAC{1, 0, 0x5e, 0, 0, 1}},
	}
	got := EffectiveMACs(sw, facts)
	for name, want := range map[string]struct {
		mac plan.MAC
		why observe.Violation
	}{
		"same": {m(1), observe.Violation{}}, "accepted": {m(0x13), observe.Violation{}},
		"unknown":  {m(0x16), observe.Violation{}},
		"rejected": {m(2), observe.Violation{Code: observe.AddressChanged, Uses: m(0x12), Has: m(2)}},
		"late":     {m(4), observe.Violation{Code: observe.AddressInUse, Uses: m(0x13), Whose: "accepted"}},
		"thief":    {m(5), observe.Violation{Code: observe.AddressInUse, Uses: m(1), Whose: "same"}},
		"uplinks":  {m(6), observe.Violation{Code: observe.AddressInUse, Uses: m(0xf1), Whose: "u1", Uplink: true}},
		"group":    {m(7), observe.Violation{Code: observe.GroupAddress, Uses: plan.MAC{1, 0, 0x5e, 0, 0, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			i := slices.IndexFunc(sw.Ports, func(p *plan.Port) bool { return p.ID == id(name) })
			if o := got[i]; o.MAC != want.mac || o.Violation != want.why {
				t.Errorf("%s: %s %+v, want %s %+v", name, o.MAC, o.Violation, want.mac, want.why)
			}
		})
	}
}
