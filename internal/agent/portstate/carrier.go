package portstate

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/active"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/state"
	"heddle/internal/dataplane"
	"heddle/internal/observe"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// learnAtOnce is how many MACs a port gets in one turn of the loop.
const learnAtOnce = 2048

// Kernel is the part of the dataplane that has what belongs to ports.
type Kernel interface {
	Travel() dataplane.Travel
	CounterReader() *dataplane.CounterReader
	MACTable() int
}

// Host is what the carrier needs of its host. Its functions are called in the loop.
type Host struct {
	active.Reader
	Loop     *loop.Loop
	Complain func(what string, err error)
	Kernel   func() Kernel
	// Parts are those that have something of ports beside what the carrier knows itself.
	Parts Parts
	// Dir is the directory for files with learned MACs.
	Dir string
	// Goods is the carrier's document: what came with ports, or is about to leave with them. The list is replaced and
	// never changed in place.
	Goods *[]state.Goods
	// Base are the counters of a port from before this host began to count for its present connection.
	Base func(plan.PortID) observe.Base
	// Wait is the wait of a port, over or not; nil for none.
	Wait func(plan.PortID) *state.Wait
	// Own is what a port has set for itself; false for a port that no command connected.
	Own func(plan.PortID) (state.OwnPolicy, bool)
	// SetOwn is an edit that makes a port's own settings those; FitsOwn says why the port can't have them.
	SetOwn  func(port string, own state.OwnPolicy)
	FitsOwn func(port string, own state.OwnPolicy) string
	// Change makes one change of the desired state, Save writes the carrier's document to disk.
	Change func(edit func()) error
	Save   func() error
	// Announce announces MACs that came with a port whose guest runs here.
	Announce func(id plan.PortID, macs []observe.MACEntry)
}

// Carrier reads what belongs to ports, and gives it to them. Only the agent's loop uses it, unless a method says
// otherwise.
type Carrier struct {
	host  Host
	files macFiles
}

// New returns a carrier.
func New(h Host) *Carrier { return &Carrier{host: h, files: macFiles{h.Dir}} }

// of is what came with a port, nil for nothing.
func (cr *Carrier) of(id plan.PortID) *state.Goods { return state.GoodsOf(*cr.host.Goods, id) }

// put replaces what came with a port.
func (cr *Carrier) put(g state.Goods) {
	cr.forget(g.ID)
	*cr.host.Goods = append(*cr.host.Goods, g)
}

// forget forgets what came with a port.
func (cr *Carrier) forget(id plan.PortID) { *cr.host.Goods = state.GoodsBut(*cr.host.Goods, id) }

// Settled returns when all frames that were under way are counted. It is called beside the loop.
func (cr *Carrier) Settled() error { return cr.host.Kernel().Travel().Settled() }

// Pack puts together what the port has now: what was read of it, and everything else that came with it and that was
// added here. Where its guest has left, the bundle is complete, and what was counted here so far belongs to the next
// host from then on.
func (cr *Carrier) Pack(id plan.PortID, read Read) (*hostv1.PortBundle, error) {
	now, err := cr.counts(id)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(read.Unread...); err != nil {
		cr.host.Complain("read what parts of the agent have of a port that leaves this host", err)
	}
	known, base := cr.of(id), cr.host.Base(id)
	w := cr.host.Wait(id)
	g := Goods{Complete: w != nil && w.Silent() && w.Left, MACs: read.MACs, Parts: read.Parts,
		Base: observe.Base{Counters: base.With(now), Others: base.Others}}
	if g.Storm, err = cr.host.Kernel().Travel().Spent(id); err != nil {
		return nil, err
	}
	own, _ := cr.host.Own(id)
	g.Blocked = own.Blocked
	b, err := Pack(&g, own.Policy)
	if err != nil {
		cr.host.Complain("pack what belongs to a port", err)
	}
	if g.Complete {
		next := state.Goods{ID: id}
		if known != nil {
			next = *known
		}
		next.Number, next.Left = min(1, next.Number), now // the next move counts from 1 again
		cr.put(next)
	}
	return b, nil
}

// counts are what this host's kernel has counted of the port.
func (cr *Carrier) counts(id plan.PortID) (observe.Counters, error) {
	r := cr.host.Kernel().CounterReader()
	if !r.Has(id) {
		return observe.Counters{}, nil
	}
	return r.Read(id)
}

// Unpack makes ready what a port had where it comes from: the loop does not wait for the MACs.
func (cr *Carrier) Unpack(b *hostv1.PortBundle) (u *Unpacked, err error) {
	came := Unpack(b, cr.host.Kernel().MACTable())
	if len(came.MACs)+len(came.Parts) == 0 {
		return &Unpacked{Came: came}, nil
	}
	file, err := cr.files.write(b)
	return &Unpacked{Came: came, file: file}, err
}

// Keep takes in what a port has where it comes from, in place of an earlier copy. It is on disk when Keep returns.
// Settings and whether the port is blocked apply at once, and so do the counters; the rest comes with Install.
func (cr *Carrier) Keep(id plan.PortID, number uint64, u *Unpacked) error {
	was := cr.of(id)
	if was != nil && number < was.Number {
		return nil
	}
	own, there := cr.host.Own(id)
	if !there {
		return fmt.Errorf("port %s is gone", id.Name)
	}
	came := u.Came
	next := state.Goods{ID: id, Number: max(1, number), At: time.Now(), Complete: came.Complete, Base: came.Base,
		Storm: came.Storm, MACs: len(came.MACs)}
	if was != nil {
		next.Own, next.Installed, next.Left, next.Base.Less = was.Own, was.Installed, was.Left, was.Left
	}
	if next.Own == nil {
		next.Own = &own
	}
	next.LeftOut = slices.Clone(came.Unknown)
	cr.keepParts(&next, came.Parts)
	if next.MACs == 0 && len(next.Parts) == 0 {
		cr.files.remove(id) // of an earlier copy; nothing of this one is taken
	} else if err := u.take(func(file string) error { return cr.files.put(id, file) }); err != nil {
		return err
	}
	cr.spend(&next)
	if err := cr.settle(&next, came); err != nil {
		return err
	}
	return cr.host.Save()
}

// spend gives a silent port what it has used up of its storm control's allowance, before its guest runs.
func (cr *Carrier) spend(g *state.Goods) {
	w := cr.host.Wait(g.ID)
	if w == nil || !w.Silent() {
		g.Storm = nil // the guest runs, and the port counts by itself
		return
	}
	known, err := cr.host.Kernel().Travel().Spend(g.ID, g.Storm)
	if err != nil {
		cr.host.Complain("give a port what it has used up of its storm control", err)
	}
	if known && err == nil {
		g.Storm = nil
	}
}

// settle makes the record, and the settings that came, those of the port. What its port group does not allow here, or
// this host can't do, is left out.
func (cr *Carrier) settle(g *state.Goods, came *Goods) error {
	set, blocked := cr.fitting(g, came)
	own := state.OwnPolicy{Policy: set.Over(g.Own.Policy), Blocked: blocked}
	edit := func() {
		cr.host.SetOwn(g.ID.Name, own)
		cr.put(*g)
	}
	if has, _ := cr.host.Own(g.ID); reflect.DeepEqual(own, has) {
		cr.put(*g)
		return nil
	}
	return cr.host.Change(edit)
}

// fitting returns the settings that came and fit the port here: all, or of each part of the policy all, or else those
// that fit by themselves.
func (cr *Carrier) fitting(g *state.Goods, came *Goods) (set spec.Policy, blocked *bool) {
	var parts [][]Setting
	all := spec.Policy{}
	for _, s := range came.Settings {
		all = s.Policy.Over(all)
		part, _, _ := strings.Cut(s.Path, ".")
		i := slices.IndexFunc(parts, func(list []Setting) bool {
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
func (cr *Carrier) fits(g *state.Goods, set spec.Policy, blocked *bool) string {
	return cr.host.FitsOwn(g.ID.Name, state.OwnPolicy{Policy: set.Over(g.Own.Policy), Blocked: blocked})
}

// Install gives the port the rest of what came with it, since its guest runs here: its learned MACs, and what parts
// have of it. Many of them, and what parts have, are given in several turns of the loop.
func (cr *Carrier) Install(id plan.PortID) error {
	g := cr.of(id)
	if g == nil || g.Number == 0 {
		return nil
	}
	next := *g
	next.Installed, next.Storm, next.MACs, next.Parts = true, nil, 0, nil
	cr.put(next)
	if g.MACs == 0 && len(g.Parts) == 0 {
		return nil
	}
	if g.MACs > learnAtOnce || len(g.Parts) > 0 { // which takes long to read
		path, err := cr.files.take(id)
		if err != nil {
			return lostMACs(id, err)
		}
		go cr.learnMany(*g, path)
		return nil
	}
	defer cr.files.remove(id) // at the end: an agent that is killed before it has learned them does it again
	read, err := readFile(cr.files.path(id), g.MACs)
	if err != nil {
		return lostMACs(id, err)
	}
	return cr.learn(id, cr.foreign(id, read.MACs, time.Since(g.At)))
}

func lostMACs(id plan.PortID, err error) error {
	return fmt.Errorf("the MACs that port %s had learned are learned anew: %w", id.Name, err)
}

// learnMany gives a port many MACs, in portions, and what parts have of it. It runs beside the loop.
func (cr *Carrier) learnMany(g state.Goods, path string) {
	read, err := cr.files.read(path, g.MACs)
	if err != nil {
		_ = cr.inLoop(func() { // which fails where the agent is stopping
			cr.host.Complain("give a port the MACs that it had learned", lostMACs(g.ID, err))
		})
		return
	}
	cr.learnRest(g.ID, read.MACs, g.At)
	cr.land(g, slices.DeleteFunc(read.Parts, func(p PartState) bool { return !slices.Contains(g.Parts, p.Part) }))
}

// inLoop calls f in the loop; the error is of an agent that is stopping.
func (cr *Carrier) inLoop(f func()) error {
	return cr.host.Loop.Do(context.Background(), func() error { f(); return nil })
}

// learn gives the port MACs, and announces those that were not known here yet.
func (cr *Carrier) learn(id plan.PortID, list []observe.MACEntry) error {
	taken, err := cr.host.Kernel().Travel().Learn(id, list)
	if len(taken) > 0 {
		cr.host.Announce(id, taken)
	}
	return err
}

// learnRest gives the port MACs that came at that time, in portions.
func (cr *Carrier) learnRest(id plan.PortID, list []observe.MACEntry, came time.Time) {
	for portion := range slices.Chunk(list, learnAtOnce) {
		err := cr.host.Loop.Do(context.Background(), func() error {
			if g := cr.of(id); g == nil || !g.Installed {
				return nil // it is gone again
			}
			if err := cr.learn(id, cr.foreign(id, portion, time.Since(came))); err != nil {
				cr.host.Complain("give a port the MACs that it had learned", err)
			}
			return nil
		})
		if err != nil {
			return // the agent is stopping
		}
	}
}

// foreign leaves out the MACs that are ports' own, and those of VLANs that the port is not in, and ages the others.
func (cr *Carrier) foreign(id plan.PortID, list []observe.MACEntry, age time.Duration) []observe.MACEntry {
	sw, p := cr.host.Active().Plan.Switch(id.Switch), cr.host.Active().Plan.Port(id)
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

// Tidy removes files that an earlier agent left.
func (cr *Carrier) Tidy() {
	if err := cr.files.tidy(*cr.host.Goods); err != nil {
		cr.host.Complain("remove files with learned MACs", err)
	}
}

// Drop takes back what Keep gave: the guest stays where it was. What came with a guest that did run here stays, since
// it belongs to what the port shows.
func (cr *Carrier) Drop(id plan.PortID) {
	g := cr.of(id)
	if g == nil {
		return
	}
	cr.files.remove(id)
	next := *g
	next.Number, next.MACs, next.Parts, next.Storm, next.LeftOut = min(1, g.Number), 0, nil, nil, nil
	if g.Installed {
		cr.put(next)
		return
	}
	edit := func() {
		if _, there := cr.host.Own(id); there && g.Own != nil {
			cr.host.SetOwn(id.Name, *g.Own)
		}
		cr.forget(id)
	}
	if _, err := cr.host.Kernel().Travel().Spend(id, nil); err != nil {
		cr.host.Complain("take back what a port has used up of its storm control", err)
	}
	if has, _ := cr.host.Own(id); g.Own == nil || reflect.DeepEqual(*g.Own, has) {
		cr.forget(id)
		return
	}
	if err := cr.host.Change(edit); err != nil {
		cr.host.Complain("take back what a port had set for itself on another host", err)
	}
}
