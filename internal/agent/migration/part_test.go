package migration

import (
	"log/slog"
	"slices"
	"testing"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/moves"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

const vm = "6f9619ff-8b86-d011-b42d-00c04fc96401"

// macsOnly is a port that has learned MACs and nothing else.
type macsOnly struct{ Baggage }

func (macsOnly) Pack(_ plan.PortID, read portstate.Read) (*hostv1.PortBundle, error) {
	return portstate.Pack(&portstate.Goods{MACs: read.MACs}, spec.Policy{})
}

// newPart returns a part of a host with one adapter, whose port waits as w says.
func newPart(t *testing.T, w *state.Wait) *Part {
	t.Helper()
	port := Adapter{VM: vm, Name: "net0", Port: plan.PortID{Switch: "lab", Name: "vm"}}
	mv := New(Host{Loop: loop.New(), Log: slog.New(slog.DiscardHandler), Events: event.NewBus(16),
		Records: &state.Travels{}, Save: func() error { return nil },
		Complain:  func(what string, err error) { t.Errorf("%s: %v", what, err) },
		Adapters:  func() []Adapter { return []Adapter{port} },
		AdapterOf: func(name string) (Adapter, bool) { return port, name == port.Port.Name },
		PortGroup: func(string) string { return "web" },
		Wait:      func(plan.PortID) *state.Wait { return w }, HasDevice: func(plan.PortID) bool { return true }})
	mv.Carry(macsOnly{})
	return mv
}

// The last copy has the MACs that were learned until the guest stopped, and a port whose device goes at once what was
// read for the copy before.
func TestS79_TheLastCopyHasTheMACsOfThen(t *testing.T) {
	mv := newPart(t, nil)
	one := []observe.MACEntry{{VLAN: 100, MAC: plan.MAC{2, 1, 1, 1, 1, 1}}}
	two := append(slices.Clone(one), observe.MACEntry{VLAN: 100, MAC: plan.MAC{2, 1, 1, 1, 1, 2}})
	f := &transfer{part: mv, host: mv.host, baggage: mv.baggage, key: keyOf(vm, "net0"),
		heard: &heard{Read: portstate.Read{MACs: one}}}
	mv.transfers[f.key] = f
	tr := &state.Travel{VM: vm, Adapter: "net0", Port: plan.PortID{Switch: "lab", Name: "vm"}}
	tr.Away = &moves.Away{Silent: true}
	macs := func() int {
		t.Helper()
		b, err := f.bundleFor(tr, moves.Send{Copy: moves.Copy{Says: moves.Stops}})
		if err != nil {
			t.Fatal(err)
		}
		return len(b.GetMacs())
	}
	tr.Away.Goods = mv.packs(tr)
	if n := macs(); n != 1 {
		t.Errorf("%d MACs at the stop, want those that were read before", n)
	}
	f.gone = true // what is read now may be another port's
	f.renews(tr, &heard{Read: portstate.Read{MACs: two}})
	if n := macs(); n != 1 {
		t.Errorf("%d MACs of a table that may be another port's", n)
	}
	f.gone = false
	f.renews(tr, &heard{Read: portstate.Read{MACs: two}})
	if n := macs(); n != 2 {
		t.Errorf("%d MACs in the last copy, want 2", n)
	}
	tr.Away.Left = true
	f.renews(tr, &heard{})
	if n := macs(); n != 2 {
		t.Errorf("%d MACs of a port that is gone, want those that it had", n)
	}
}

// Where a guest is, is told by the wait of its port: while its hypervisor is asked again, nothing is taken for sure.
func TestS99_S100_TheWaitOfAPortSaysWhereItsGuestIs(t *testing.T) {
	for name, c := range map[string]struct {
		wait    *state.Wait
		guest   moves.Guest
		arrives bool
	}{
		"no wait":             {nil, moves.GuestRuns, false},
		"a wait that is over": {&state.Wait{Wait: presence.Wait{Awake: true}}, moves.GuestRuns, false},
		"a frame, and its hypervisor asks": {&state.Wait{Wait: presence.Wait{Awake: true, Doubt: true}},
			moves.GuestUnsure, false},
		"in doubt":    {&state.Wait{Wait: presence.Wait{Doubt: true}}, moves.GuestUnsure, false},
		"it has left": {&state.Wait{Wait: presence.Wait{Left: true}}, moves.GuestLeft, false},
		"it is to arrive": {&state.Wait{Wait: presence.Wait{Why: observe.WaitAnnounced}},
			moves.GuestGone, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := newPart(t, c.wait).see(plan.PortID{Switch: "lab", Name: "vm"})
			if got.guest != c.guest || got.arrives != c.arrives {
				t.Errorf("%+v", got)
			}
		})
	}
}
