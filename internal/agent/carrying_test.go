package agent

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/abi"
	"heddle/internal/agent/portstate"
	"heddle/internal/agent/presence"
	"heddle/internal/agent/state"
	"heddle/internal/api"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// lenient lets ports set what travels in the tests; strict lets them set nothing.
var (
	lenient = strings.Replace(base, "{name: web, vlan: {access: 100}}", "{name: web, vlan: {access: 100}, "+
		"overrides: {security: true, stormControl: true}}", 1)
	strict = strings.Replace(base, "{name: web, vlan: {access: 100}}", "{name: web, vlan: {access: 100}, "+
		"overrides: {stormControl: true}}", 1)
)

// travelHost is a host with port vm whose kernel has counted something.
func travelHost(t *testing.T, content string, delivered uint64) *rig {
	t.Helper()
	r := newRig(t, content)
	r.dev.tap("tap0")
	if err := r.connectIncoming(spec.Port{Name: "vm", PortGroup: "web", Device: "tap0",
		MAC: "52:54:00:00:00:01"}); err != nil {
		t.Fatal(err)
	}
	r.kernel.counters = map[plan.PortID]observe.Counters{id("vm"): {Delivered: delivered,
		Drops: map[abi.Reason]uint64{abi.ReasonStormControl: delivered / 10}}}
	return r
}

// arrives has the guest run here, leaves has it go away.
func (r *rig) arrives() {
	r.t.Helper()
	w := r.state.WaitOf(id("vm"))
	if w == nil || !r.waiting.Wake(w, presence.Step{Why: "the test says so"}) {
		r.t.Fatal("the port did not wait")
	}
	r.waiting.Follow()
	if err := r.carrying.Install(id("vm")); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) leaves() {
	r.waiting.Begin(state.Wait{ID: id("vm"), Wait: presence.Wait{Left: true, Why: observe.WaitQEMUStopped}})
	r.waiting.Follow()
}

func (r *rig) packs() *hostv1.PortBundle {
	r.t.Helper()
	read, err := r.carrying.Reads(id("vm"))
	if err != nil {
		r.t.Fatal(err)
	}
	var what portstate.Read
	if read != nil {
		if what, err = read(); err != nil {
			r.t.Fatal(err)
		}
	}
	b, err := r.carrying.Pack(id("vm"), what)
	if err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *rig) keeps(number uint64, b *hostv1.PortBundle) {
	r.t.Helper()
	u, err := r.carrying.Unpack(b)
	if err == nil {
		defer u.Discard()
		err = r.carrying.Keep(id("vm"), number, u)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// delivered is what "heddle stats" shows of the port.
func (r *rig) delivered() (delivered, dropped uint64) {
	r.t.Helper()
	n := r.state.BaseOf(id("vm")).With(r.kernel.counters[id("vm")])
	return n.Delivered, n.Drops[abi.ReasonStormControl]
}

func (r *rig) portShown() api.Port {
	all := r.answers.view().Ports
	return all[slices.IndexFunc(all, func(p api.Port) bool { return p.Name == "vm" })]
}

func (r *rig) sums(delivered, dropped uint64) {
	r.t.Helper()
	if d, x := r.delivered(); d != delivered || x != dropped {
		r.t.Errorf("%d delivered and %d dropped, want %d and %d", d, x, delivered, dropped)
	}
}

// What belongs to a port goes with its guest from host to host to host and back, and nothing is counted twice.
func TestS79_WhatBelongsToAPortTravels(t *testing.T) {
	a, b, c := travelHost(t, lenient, 1000), travelHost(t, lenient, 50), travelHost(t, lenient, 7)
	a.arrives()
	limit, yes := 9, true
	if err := a.changer.change(func() {
		a.connected.setOwn("vm",
			state.OwnPolicy{Policy: spec.Policy{StormControl: spec.StormControl{Broadcast: &limit}}})
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.block("vm", true); err != nil {
		t.Fatal(err)
	}
	a.kernel.learned = map[plan.PortID][]observe.MACEntry{id("vm"): {
		{VLAN: 100, MAC: plan.MAC{2, 1, 1, 1, 1, 1}, Idle: 3},
		{VLAN: 100, MAC: plan.MAC{2, 0, 0, 0, 0, 0xa}}, {VLAN: 7, MAC: plan.MAC{2, 1, 1, 1, 1, 2}}}}
	spent := []observe.Spent{{Class: abi.ClassMulticast, Billionths: 123}}
	a.kernel.spent = map[plan.PortID][]observe.Spent{id("vm"): spent}

	b.keeps(1, a.packs())
	b.keeps(1, a.packs())
	a.kernel.counters[id("vm")] = observe.Counters{Delivered: 1005}
	a.leaves()
	last := a.packs()
	b.keeps(2, last)
	b.sums(1055, 5)
	if own, _ := b.connected.own(id("vm")); *own.Policy.StormControl.Broadcast != limit || *own.Blocked != yes {
		t.Errorf("own settings %+v", own)
	}
	if !reflect.DeepEqual(b.kernel.spent[id("vm")], spent) || b.kernel.learned != nil {
		t.Errorf("while it waits: spent %+v, MACs %+v", b.kernel.spent, b.kernel.learned)
	}
	// The agent dies between the last copy and the guest's first frame.
	if err := b.restart(lenient); err != nil {
		t.Fatal(err)
	}
	b.sums(1055, 5)
	b.arrives()
	b.sums(1055, 5)
	// Ports' own MACs and those of other VLANs stay away.
	got := b.kernel.learned[id("vm")]
	if len(got) != 1 || got[0].MAC != (plan.MAC{2, 1, 1, 1, 1, 1}) || got[0].Idle < 3 {
		t.Errorf("learned %+v", got)
	}
	if p := b.portShown(); !p.CountersLackSince.IsZero() || len(p.LeftOut) != 0 {
		t.Errorf("%v, %v", p.CountersLackSince, p.LeftOut)
	}
	b.leaves()
	c.keeps(1, b.packs())
	c.arrives()
	c.sums(1062, 5)
	c.leaves()
	// The guest comes back to the first host, whose port is still there.
	a.waiting.Begin(state.Wait{ID: id("vm"), Wait: presence.Wait{Why: observe.WaitAnnounced}})
	a.waiting.Follow()
	a.keeps(1, c.packs())
	a.arrives()
	a.sums(1062, 5)
	a.kernel.counters[id("vm")] = observe.Counters{Delivered: 1006}
	a.sums(1063, 5)
	if err := a.disconnect(api.Disconnect{Port: "vm"}); err != nil || len(a.state.Goods) != 0 {
		t.Errorf("after the port is gone: %+v, %v", a.state.Goods, err)
	}
}

// The source dies before its last copy: what came is shown, and that later counts are missing.
func TestS79_AMissingLastCopyIsSaid(t *testing.T) {
	a, b := travelHost(t, lenient, 1000), travelHost(t, lenient, 0)
	a.arrives()
	b.keeps(1, a.packs())
	b.arrives()
	b.sums(1000, 100)
	if b.portShown().CountersLackSince.IsZero() {
		t.Error("nobody says that counts are missing")
	}
	a.leaves()
	b.keeps(2, a.packs()) // it only came late
	if at := b.portShown().CountersLackSince; !at.IsZero() {
		t.Errorf("counts are missing since %v", at)
	}
}

// A host leaves out what its port group does not allow and what it does not know, and says so; a cancelled move leaves
// the port as it was.
func TestS79_WhatIsNotAllowedThereIsLeftOut(t *testing.T) {
	a, b := travelHost(t, lenient, 10), travelHost(t, strict, 3)
	a.arrives()
	limit, yes := 9, true
	if err := a.changer.change(func() {
		a.connected.setOwn("vm", state.OwnPolicy{Policy: spec.Policy{StormControl: spec.StormControl{Broadcast: &limit},
			Security: spec.Security{ForgedTransmits: spec.Accept}}, Blocked: &yes})
	}); err != nil {
		t.Fatal(err)
	}
	before, _ := b.connected.own(id("vm"))
	bundle := a.packs()
	later := proto.Clone(bundle).(*hostv1.PortBundle)
	later.Policy[0].Policy = "security.ofTomorrow"
	b.keeps(1, bundle)
	own, _ := b.connected.own(id("vm"))
	if own.Policy.StormControl.Broadcast == nil || own.Policy.Security.ForgedTransmits != "" || own.Blocked == nil {
		t.Errorf("own settings %+v", own)
	}
	if out := b.portShown().LeftOut; len(out) != 1 || !strings.Contains(out[0], "security.forgedTransmits") {
		t.Errorf("left out: %q", out)
	}
	b.keeps(2, later)
	if out := b.portShown().LeftOut; len(out) != 1 || !strings.Contains(out[0], "security.ofTomorrow") {
		t.Errorf("left out: %q", out)
	}
	b.sums(13, 1)
	b.carrying.Drop(id("vm"))
	b.sums(3, 0)
	if own, _ := b.connected.own(id("vm")); !reflect.DeepEqual(own, before) {
		t.Errorf("after the move was cancelled: %+v, want %+v", own, before)
	}
	files, err := filepath.Glob(filepath.Join(b.dir, "macs-*"))
	if err != nil || len(files) != 0 {
		t.Errorf("files %v, %v", files, err)
	}
}

// A file of a port that is gone is removed by the next agent.
func TestLeftOverMACFilesAreRemoved(t *testing.T) {
	r := newRig(t, base)
	path := filepath.Join(r.dir, "macs-00")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.carrying.Tidy()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// A great many MACs that came with a port are read and learned beside the loop, which takes turns meanwhile; a copy
// that comes later does not meet the file of the one before, and no file is left.
func TestS79_AGreatManyMACsDoNotHoldTheLoop(t *testing.T) {
	r := travelHost(t, lenient, 1)
	list := make([]observe.MACEntry, 6000)
	for i := range list {
		list[i] = observe.MACEntry{Switch: "lab", VLAN: 100, Port: id("vm"),
			MAC: plan.MAC{2, 1, 0, 0, byte(i >> 8), byte(i)}}
	}
	b, err := r.carrying.Pack(id("vm"), portstate.Read{MACs: list})
	if err != nil {
		t.Fatal(err)
	}
	r.keeps(1, b)
	if !r.waiting.Wake(r.state.WaitOf(id("vm")), presence.Step{Why: "the test says so"}) {
		t.Fatal("the port did not wait")
	}
	r.waiting.Follow()
	atOnce, turns := 0, 0
	err = r.command(func(ctx context.Context) error {
		err := r.Do(ctx, func() error {
			err := r.carrying.Install(id("vm"))
			atOnce = len(r.kernel.learned[id("vm")])
			r.keeps(2, b)
			return err
		})
		end := time.Now().Add(time.Minute)
		for n := 0; err == nil && n < len(list) && time.Now().Before(end); turns++ {
			err = r.Do(ctx, func() error { n = len(r.kernel.learned[id("vm")]); return nil })
			runtime.Gosched()
		}
		return err
	})
	if err != nil || atOnce != 0 || turns == 0 || len(r.kernel.learned[id("vm")]) != len(list) {
		t.Errorf("%v: %d MACs at once, %d in the end, of %d, after %d turns", err, atOnce,
			len(r.kernel.learned[id("vm")]), len(list), turns)
	}
	files, err := filepath.Glob(filepath.Join(r.dir, "macs-*"))
	if err != nil || len(files) != 1 || strings.Contains(files[0], "new-") {
		t.Errorf("files %v, %v: want that of the second copy", files, err)
	}
}
