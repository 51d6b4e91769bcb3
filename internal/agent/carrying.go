package agent

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/bundle"
	"heddle/internal/agent/state"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// learnAtOnce is how many MACs a port gets in one turn of the loop.
const learnAtOnce = 2048

// carrying owns what belongs to ports and travels with them from host to host (S79). All of it is called in the loop.
type carrying struct {
	*shared
	ports *ports
	// change makes one change of the desired state.
	change func(edit func()) error
	files  macFiles
	// announce announces MACs that came with a port whose guest runs here.
	announce func(id plan.PortID, macs []observe.MACEntry)
}

// reads returns what reads, beside the loop, the MACs that were learned at the port.
func (cr *carrying) reads(id plan.PortID) (func() ([]observe.MACEntry, error), error) {
	return cr.kernel.Travel().MACs(id)
}

// settled returns when all frames that were under way are counted. It is called beside the loop.
func (cr *carrying) settled() error { return cr.kernel.Travel().Settled() }

// pack puts together what the port has now: these MACs, and everything else that came with it and that was added here.
// Where its guest has left, the bundle is complete, and what was counted here so far belongs to the next host from then
// on.
func (cr *carrying) pack(id plan.PortID, macs []observe.MACEntry) (*hostv1.PortBundle, error) {
	now, err := cr.counts(id)
	if err != nil {
		return nil, err
	}
	known, base := cr.state.GoodsOf(id), cr.state.BaseOf(id)
	w := cr.state.WaitOf(id)
	g := bundle.Goods{Complete: w != nil && w.Silent() && w.Left, MACs: macs,
		Base: observe.Base{Counters: base.With(now), Others: base.Others}}
	if g.Storm, err = cr.kernel.Travel().Spent(id); err != nil {
		return nil, err
	}
	own := cr.own(id)
	g.Blocked = own.Blocked
	b, err := bundle.Pack(&g, own.Policy)
	if err != nil {
		cr.Complain("pack what belongs to a port", err)
	}
	if g.Complete {
		next := state.Goods{ID: id}
		if known != nil {
			next = *known
		}
		next.Number, next.Left = min(1, next.Number), now // the next move counts from 1 again
		cr.state.PutGoods(next)
	}
	return b, nil
}

// counts are what this host's kernel has counted of the port.
func (cr *carrying) counts(id plan.PortID) (observe.Counters, error) {
	r := cr.kernel.CounterReader()
	if !r.Has(id) {
		return observe.Counters{}, nil
	}
	return r.Read(id)
}

// own is what the port has set for itself.
func (cr *carrying) own(id plan.PortID) state.OwnPolicy {
	o := state.OwnPolicy{Blocked: cr.state.Overrides[id.Name].Blocked}
	if p := cr.ports.runTime(id.Name); p != nil && p.Switch == id.Switch {
		o.Policy = p.Policy
	}
	return o
}

// unpack makes ready what a port had where it comes from: the loop does not wait for the MACs.
func (cr *carrying) unpack(b *hostv1.PortBundle) (u *unpacked, err error) {
	u = &unpacked{came: bundle.Unpack(b, cr.kernel.MACTable())}
	if len(u.came.MACs) > 0 {
		u.file, err = cr.files.write(b)
	}
	return u, err
}

// keep takes in what a port has where it comes from, in place of an earlier copy. It is on disk when keep returns.
// Settings and whether the port is blocked apply at once, and so do the counters; the rest comes with install.
func (cr *carrying) keep(id plan.PortID, number uint64, u *unpacked) error {
	was := cr.state.GoodsOf(id)
	if was != nil && number < was.Number {
		return nil
	}
	p := cr.ports.runTime(id.Name)
	if p == nil || p.Switch != id.Switch {
		return fmt.Errorf("port %s is gone", id.Name)
	}
	came := u.came
	next := state.Goods{ID: id, Number: max(1, number), At: time.Now(), Complete: came.Complete, Base: came.Base,
		Storm: came.Storm, MACs: len(came.MACs)}
	if was != nil {
		next.Own, next.Installed, next.Left, next.Base.Less = was.Own, was.Installed, was.Left, was.Left
	}
	if next.Own == nil {
		own := cr.own(id)
		next.Own = &own
	}
	if err := cr.files.put(id, u.file); err != nil {
		return err
	}
	u.file = ""
	cr.spend(&next)
	if err := cr.settle(&next, came); err != nil {
		return err
	}
	return cr.ports.save()
}

// spend gives a silent port what it has used up of its storm control's allowance, before its guest runs.
func (cr *carrying) spend(g *state.Goods) {
	w := cr.state.WaitOf(g.ID)
	if w == nil || !w.Silent() {
		g.Storm = nil // the guest runs, and the port counts by itself
		return
	}
	known, err := cr.kernel.Travel().Spend(g.ID, g.Storm)
	if err != nil {
		cr.Complain("give a port what it has used up of its storm control", err)
	}
	if known && err == nil {
		g.Storm = nil
	}
}

// settle makes the record, and the settings that came, those of the port. What its port group does not allow here, or
// this host can't do, is left out.
func (cr *carrying) settle(g *state.Goods, came *bundle.Goods) error {
	g.LeftOut = slices.Clone(came.Unknown)
	set, blocked := cr.fitting(g, came)
	own := state.OwnPolicy{Policy: set.Over(g.Own.Policy), Blocked: blocked}
	edit := func() {
		cr.apply(g.ID.Name, own)
		cr.state.PutGoods(*g)
	}
	if reflect.DeepEqual(own, cr.own(g.ID)) {
		cr.state.PutGoods(*g)
		return nil
	}
	return cr.change(edit)
}

// apply is an edit that makes a port's own settings those.
func (cr *carrying) apply(port string, own state.OwnPolicy) {
	cr.state.Ports = slices.Clone(cr.state.Ports)
	if p := cr.ports.runTime(port); p != nil {
		p.Policy = own.Policy
	}
	o := cr.state.Overrides[port]
	o.Blocked = own.Blocked
	if cr.state.Overrides[port] = o; o == (state.Override{}) {
		delete(cr.state.Overrides, port)
	}
}

// fitting returns the settings that came and fit the port here: all, or of each part of the policy all, or else those
// that fit by themselves.
func (cr *carrying) fitting(g *state.Goods, came *bundle.Goods) (set spec.Policy, blocked *bool) {
	var parts [][]bundle.Setting
	all := spec.Policy{}
	for _, s := range came.Settings {
		all = s.Policy.Over(all)
		part, _, _ := strings.Cut(s.Path, ".")
		i := slices.IndexFunc(parts, func(list []bundle.Setting) bool {
			return strings.HasPrefix(list[0].Path+".", part+".")
		})
		if i < 0 {
			parts, i = append(parts, nil), len(parts)
		}
		parts[i] = append(parts[i], s)
	}
	if cr.fits(g, all, came.Blocked) == "" {
		return all, came.Blocked
	}
	if why := cr.fits(g, set, came.Blocked); why == "" {
		blocked = came.Blocked
	} else {
		g.LeftOut = append(g.LeftOut, "blocked: "+why)
	}
	for _, part := range parts {
		whole := set
		for _, s := range part {
			whole = s.Policy.Over(whole)
		}
		if cr.fits(g, whole, blocked) == "" {
			set = whole
			continue
		}
		for _, s := range part {
			if why := cr.fits(g, s.Policy.Over(set), blocked); why != "" {
				g.LeftOut = append(g.LeftOut, s.Path+": "+why)
				continue
			}
			set = s.Policy.Over(set)
		}
	}
	return set, blocked
}

// fits says why the port can't have these settings; "" where it can. Nothing changes.
func (cr *carrying) fits(g *state.Goods, set spec.Policy, blocked *bool) string {
	before := cr.ports.intent()
	defer cr.ports.restore(before)
	cr.apply(g.ID.Name, state.OwnPolicy{Policy: set.Over(g.Own.Policy), Blocked: blocked})
	_, faults := cr.ports.layers().merge()
	if lines, _ := cr.ports.newFaults(faults, before, cr.ports.file); len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// install gives the port the rest of what came with it, since its guest runs here: its learned MACs. Many of them are
// given in several turns of the loop.
func (cr *carrying) install(id plan.PortID) error {
	g := cr.state.GoodsOf(id)
	if g == nil || g.Number == 0 {
		return nil
	}
	next := *g
	next.Installed, next.Storm, next.MACs = true, nil, 0
	cr.state.PutGoods(next)
	if g.MACs == 0 {
		return nil
	}
	if g.MACs > learnAtOnce { // which takes long to read
		path, err := cr.files.take(id)
		if err != nil {
			return lostMACs(id, err)
		}
		go cr.learnMany(*g, path)
		return nil
	}
	defer cr.files.remove(id) // at the end: an agent that is killed before it has learned them does it again
	list, err := readMACs(cr.files.path(id), g.MACs)
	if err != nil {
		return lostMACs(id, err)
	}
	return cr.learn(id, cr.foreign(id, list, time.Since(g.At)))
}

func lostMACs(id plan.PortID, err error) error {
	return fmt.Errorf("the MACs that port %s had learned are learned anew: %w", id.Name, err)
}

// learnMany gives a port many MACs, in portions. It runs beside the loop.
func (cr *carrying) learnMany(g state.Goods, path string) {
	list, err := cr.files.read(path, g.MACs)
	if err != nil {
		_ = cr.Do(context.Background(), func() error { // which fails where the agent is stopping
			cr.Complain("give a port the MACs that it had learned", lostMACs(g.ID, err))
			return nil
		})
		return
	}
	cr.learnRest(g.ID, list, g.At)
}

// learn gives the port MACs, and announces those that were not known here yet.
func (cr *carrying) learn(id plan.PortID, list []observe.MACEntry) error {
	taken, err := cr.kernel.Travel().Learn(id, list)
	if len(taken) > 0 {
		cr.announce(id, taken)
	}
	return err
}

// learnRest gives the port MACs that came at that time, in portions.
func (cr *carrying) learnRest(id plan.PortID, list []observe.MACEntry, came time.Time) {
	for portion := range slices.Chunk(list, learnAtOnce) {
		err := cr.Do(context.Background(), func() error {
			if g := cr.state.GoodsOf(id); g == nil || !g.Installed {
				return nil // it is gone again
			}
			if err := cr.learn(id, cr.foreign(id, portion, time.Since(came))); err != nil {
				cr.Complain("give a port the MACs that it had learned", err)
			}
			return nil
		})
		if err != nil {
			return // the agent is stopping
		}
	}
}

// foreign leaves out the MACs that are ports' own, and those of VLANs that the port is not in, and ages the others.
func (cr *carrying) foreign(id plan.PortID, list []observe.MACEntry, age time.Duration) []observe.MACEntry {
	sw, p := cr.Active().Plan.Switch(id.Switch), cr.Active().Plan.Port(id)
	if sw == nil || p == nil {
		return nil
	}
	own := map[plan.MAC]bool{}
	for _, other := range sw.Ports {
		own[other.InitialMAC] = true
	}
	out := list[:0]
	for _, e := range list {
		if own[e.MAC] || !inVLAN(p, e) {
			continue
		}
		e.Idle += max(0, age).Seconds()
		out = append(out, e)
	}
	return out
}

// inVLAN reports whether the port may send in the VLAN of the MAC.
func inVLAN(p *plan.Port, e observe.MACEntry) bool {
	switch v := p.Policy.VLAN.V; v.Mode {
	case plan.VLANAccess:
		return e.VLAN == v.ID && !e.AD
	case plan.VLANTrunk:
		return v.Set.Has(e.VLAN) && (e.AD == v.AD || e.VLAN == 0)
	}
	return e.VLAN == 0
}

// tidy removes files that an earlier agent left.
func (cr *carrying) tidy() {
	if err := cr.files.tidy(cr.state.Goods); err != nil {
		cr.Complain("remove files with learned MACs", err)
	}
}

// drop takes back what keep gave: the guest stays where it was. What came with a guest that did run here stays, since
// it belongs to what the port shows.
func (cr *carrying) drop(id plan.PortID) {
	g := cr.state.GoodsOf(id)
	if g == nil {
		return
	}
	cr.files.remove(id)
	next := *g
	next.Number, next.MACs, next.Storm, next.LeftOut = min(1, g.Number), 0, nil, nil
	if g.Installed {
		cr.state.PutGoods(next)
		return
	}
	edit := func() {
		if g.Own != nil && cr.ports.runTime(id.Name) != nil {
			cr.apply(id.Name, *g.Own)
		}
		cr.state.DropGoods(id)
	}
	if _, err := cr.kernel.Travel().Spend(id, nil); err != nil {
		cr.Complain("take back what a port has used up of its storm control", err)
	}
	if g.Own == nil || reflect.DeepEqual(*g.Own, cr.own(id)) {
		cr.state.DropGoods(id)
		return
	}
	if err := cr.change(edit); err != nil {
		cr.Complain("take back what a port had set for itself on another host", err)
	}
}
