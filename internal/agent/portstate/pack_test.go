package portstate

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "heddle/api/heddle/agent/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/abi"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// full is what a port of this version may have.
func full() (g Goods, own spec.Policy) {
	yes, rate := true, 5
	return Goods{Complete: true, Blocked: &yes,
		Base: observe.Base{Counters: observe.Counters{Delivered: 7, BytesIn: [abi.Classes]uint64{1, 2, math.MaxUint64},
			Drops: map[abi.Reason]uint64{abi.ReasonMACLimit: 3}}},
		MACs: []observe.MACEntry{{VLAN: 4094, AD: true, MAC: plan.MAC{2, 3, 4, 5, 6, 7}, Idle: 1.5},
			{MAC: plan.MAC{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff}}},
		Storm: []observe.Spent{{Class: abi.ClassBroadcast, Billionths: 9, Idle: 250 * time.Millisecond}},
	}, spec.Policy{StormControl: spec.StormControl{Broadcast: &rate, Burst: "10ms"}}
}

func TestS79_ABundleIsWhatWasPacked(t *testing.T) {
	g, own := full()
	b, err := Pack(&g, own)
	if err != nil {
		t.Fatal(err)
	}
	got := Unpack(b, 10)
	set := spec.Policy{}
	for _, s := range got.Settings {
		set = s.Policy.Over(set)
	}
	if len(got.Settings) != 2 || !reflect.DeepEqual(set, own) {
		t.Errorf("settings %+v", got.Settings)
	}
	got.Settings = nil
	if !reflect.DeepEqual(*got, g) {
		t.Errorf("got %+v, want %+v", *got, g)
	}
}

// The next version has counters, settings and fields that this one does not know; the counters go on with the port.
func TestS79_TheNextVersionIsUnderstood(t *testing.T) {
	g, own := full()
	b, err := Pack(&g, own)
	if err != nil {
		t.Fatal(err)
	}
	b.Version = 2
	b.Counters = append(b.Counters, &hostv1.PortCount{Name: "drop.of-tomorrow", Value: 4},
		&hostv1.PortCount{Name: "framesOfTomorrow", Value: 5})
	b.Policy = append(b.Policy, &agentv1.PolicySetting{Policy: "stormControl.tomorrow"})
	b.Storm = append(b.Storm, &hostv1.StormSpent{Class: "tomorrow", Billionths: 1})
	text, err := proto.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	b = &hostv1.PortBundle{}
	if err := proto.Unmarshal(append(text, 0xfa, 0x3e, 1, 'x'), b); err != nil { // field 1007
		t.Fatal(err)
	}
	got := Unpack(b, 10)
	if len(got.Unknown) != 1 || !strings.Contains(got.Unknown[0], "stormControl.tomorrow") || len(got.Settings) != 2 {
		t.Errorf("%q, %+v", got.Unknown, got.Settings)
	}
	want := observe.Named{Name: "of-tomorrow", Value: 4}
	if dropped, refused := got.Base.OtherReasons(); len(dropped) != 1 || dropped[0] != want || len(refused) != 0 {
		t.Errorf("%+v, %+v", dropped, refused)
	}
	again, err := Pack(got, own)
	if err != nil {
		t.Fatal(err)
	}
	next := Unpack(again, 10)
	if !reflect.DeepEqual(next.Base, got.Base) || len(next.Base.Others) != 2 {
		t.Errorf("the next host gets %+v, want %+v", next.Base, got.Base)
	}
	if old := Unpack(&hostv1.PortBundle{}, 10); !reflect.DeepEqual(*old, Goods{MACs: []observe.MACEntry{}}) {
		t.Errorf("an empty bundle is %+v", old)
	}
}

// A hostile host gains no memory, no room in the table and no false text.
func TestS79_AHostileBundleIsBounded(t *testing.T) {
	b := &hostv1.PortBundle{Macs: []uint64{0, 1 << 40, math.MaxUint64, 2 << 40, 2<<40 | 1, 2<<40 | 2, 2<<40 | 3},
		Idle: []uint32{math.MaxUint32, 1, 2, math.MaxUint32, 4, 5}}
	for range 100_000 {
		b.Counters = append(b.Counters, &hostv1.PortCount{Name: strings.Repeat("x", 1000), Value: 1})
		b.Policy = append(b.Policy, &agentv1.PolicySetting{Policy: "\x1b[31m"}, nil)
		b.Storm = append(b.Storm, nil, &hostv1.StormSpent{Class: "unicast", Billionths: math.MinInt64})
	}
	for i := range 1000 {
		b.Counters[i].Name = "drop." + strings.Repeat("y", i%50) // also without a reason
	}
	for i := range 5 {
		b.Policy[i].Policy = []string{"vlan", "vlan.access.id", "", ".", "security.ipSourceGuard"}[i%5]
		if b.Policy[i+1] == nil {
			b.Policy[i+1] = &agentv1.PolicySetting{}
		}
	}
	g := Unpack(b, 5)
	if len(g.MACs) != 2 || len(g.Storm) != 0 || len(g.Base.Others) > maxCounts || len(g.Settings) > 0 ||
		len(g.Unknown) > maxSettings {
		t.Errorf("%+v", g)
	}
	for _, s := range g.Unknown {
		if strings.Contains(s, "\x1b") {
			t.Errorf("%q", s)
		}
	}
	huge := Unpack(&hostv1.PortBundle{Counters: []*hostv1.PortCount{{Name: "delivered", Value: math.MaxUint64},
		{Name: "delivered", Value: 3}}}, 0)
	if n := huge.Base.With(observe.Counters{Delivered: 5}); n.Delivered != math.MaxUint64 {
		t.Errorf("%d delivered", n.Delivered)
	}
}

func BenchmarkPack100000MACs(b *testing.B) {
	g := Goods{MACs: make([]observe.MACEntry, 100_000)}
	for i := range g.MACs {
		g.MACs[i].MAC = plan.MAC{2, 1, 0, byte(i >> 16), byte(i >> 8), byte(i)}
	}
	for b.Loop() {
		m, err := Pack(&g, spec.Policy{})
		if err != nil || len(Unpack(m, len(g.MACs)).MACs) != len(g.MACs) {
			b.Fatal(err)
		}
	}
}
