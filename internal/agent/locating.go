package agent

import (
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"heddle/internal/agent/segments"
	"heddle/internal/agent/state"
	"heddle/internal/dataplane/compile"
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/uplinks"
)

// locating is the host's part in the overlay segments that controllers define: it has them told what is behind this
// host's ports, and the kernel told where everything else is. Without controllers the host goes on by what it knew
// last, and by what the frames of other hosts show.
type locating struct {
	*shared
	ports      *ports
	settler    *settler
	generation func(*state.NIC) uint64

	keeper     *segments.Keeper // nil before open
	nested     nested           // what was learned behind ports of overlay segments
	addressing addressing       // who has which address there
	ends       []netip.Addr     // this host's endpoints, as the controllers were last told
	// lost is called when the host has lost addresses of its endpoints.
	lost func([]netip.Addr)
	// told are the switches whose tunnels the kernel was told everything of, with the segments that they had then.
	told   map[string]map[compile.OverlaySegment]bool
	due    atomic.Bool // the loop is to take what has changed
	saving atomic.Bool
}

// open reads what was known when the process before ended. self is the host's id in its cluster.
func (l *locating) open(dir string, self func() string) {
	l.told = map[string]map[compile.OverlaySegment]bool{}
	l.nested = newNested()
	l.keeper = segments.New(segments.Options{Dir: dir, Self: self, Log: l.log, Changed: l.changed})
}

// changed has the loop take what the controllers said. It is called by any goroutine, and does not wait.
func (l *locating) changed() {
	if l.due.CompareAndSwap(false, true) {
		go l.Post(func() { l.due.Store(false); l.take() })
	}
}

// defined returns the switches with a tunnel that controllers define.
func (l *locating) defined() (list []*plan.Switch) {
	if l.ports.slice == nil || l.keeper == nil {
		return nil
	}
	for _, sw := range l.Active().Plan.Switches {
		if sw.Tunnel != nil && l.isDefined(sw.Name) {
			list = append(list, sw)
		}
	}
	return list
}

func (l *locating) isDefined(name string) bool {
	if l.ports.slice == nil || l.keeper == nil {
		return false
	}
	return slices.ContainsFunc(l.ports.slice.Switches, func(s spec.Switch) bool { return s.Name == name })
}

// reach is what this host knows of the endpoints of others, for one switch: by its file, or by the controllers.
func (l *locating) reach(sw *plan.Switch) overlay.Reach {
	if !l.isDefined(sw.Name) {
		return overlay.Of(sw)
	}
	r := l.keeper.Reach(sw.VNIs())
	if l.keeper.Blank() {
		r = l.kernel.Reached(sw.Name)
	}
	heard, _ := l.keeper.Hears()
	r.Learn = !heard && sw.Tunnel.Learning
	return r
}

// take tells the kernel what has changed: first which endpoints there are, then where MACs are.
func (l *locating) take() {
	c := l.keeper.Take()
	l.save()
	if c.Members {
		l.settler.settle()
	}
	for _, sw := range l.defined() {
		l.locate(sw, c)
	}
}

// locate tells the kernel of the segments of one switch.
func (l *locating) locate(sw *plan.Switch, c segments.Change) {
	all := l.told[sw.Name] == nil
	if all && l.keeper.Blank() {
		return
	}
	if all {
		c = l.keeper.All()
	}
	has := map[uint32]bool{}
	for _, vni := range sw.VNIs() {
		has[vni] = true
	}
	var put []overlay.Location
	now := time.Now()
	for _, p := range c.Put {
		if has[p.VNI] {
			put = append(put, p)
			l.nested.claimed(p.Key, now)
		}
	}
	var err error
	if all || len(put)+len(c.Removed) > 0 {
		err = l.kernel.Locate(sw.Name, all, put, c.Removed)
	}
	if err == nil {
		err = l.bind(sw, all, c)
	}
	if err != nil {
		delete(l.told, sw.Name) // all of it is said again with the next tick
		l.Complain("tell the kernel where the MACs of overlay segments are", err)
		return
	}
	if all {
		l.told[sw.Name] = compile.OverlaySegments(sw)
	}
}

// Settled is called in the loop after each reconcile.
func (l *locating) Settled(uplinks.InForce) {
	for _, sw := range l.defined() {
		if told := l.told[sw.Name]; told != nil && !maps.Equal(told, compile.OverlaySegments(sw)) {
			delete(l.told, sw.Name) // of a VLAN that it did not have the kernel took no word
		}
		if l.told[sw.Name] == nil {
			l.locate(sw, segments.Change{})
		}
	}
	l.say()
}

// tick reads what was learned behind ports, and has what is known saved.
func (l *locating) tick() {
	if l.keeper == nil {
		return
	}
	listens, hears := l.listens(), l.hears()
	if listens || hears {
		all, at, ok := l.learned() // once for both: the table may be long
		if ok && listens {
			all = l.listen(all, at)
			l.Settled(uplinks.InForce{})
		}
		if ok && hears {
			l.hearNeighbours(all)
		}
	}
	l.save()
}

// save has what is known saved beside the loop: an agent that is killed a moment later starts with it.
func (l *locating) save() {
	if !l.saving.CompareAndSwap(false, true) {
		return // what comes meanwhile is saved with the next tick
	}
	go func() {
		defer l.saving.Store(false)
		if err := l.keeper.Save(); err != nil {
			l.log.Error("what is known of overlay segments cannot be saved: it is unknown after a start without "+
				"controllers", "err", err)
		}
	}()
}

// listens reports whether MACs are learned behind some port of an overlay segment.
func (l *locating) listens() bool {
	for _, sw := range l.defined() {
		for _, p := range sw.Ports {
			if p.VNI != 0 && p.Policy != nil && p.Policy.Learning.Enabled.V {
				return true
			}
		}
	}
	return len(l.nested.macs) > 0
}

// say has the controllers told what this host has.
func (l *locating) say() {
	if l.keeper == nil || l.Active().Applied == nil {
		return
	}
	var endpoints []span.Endpoint
	have := map[span.VNI]map[span.Key]span.Claim{}
	now := time.Now().UnixMilli()
	for _, sw := range l.defined() {
		fact := l.Active().Applied.Facts[sw.Tunnel.ID]
		for _, a := range fact.Endpoints {
			endpoints = append(endpoints, span.Endpoint{Address: a, MTU: uint32(fact.MTU)})
		}
		l.own(sw, have, now)
	}
	for at := range l.nested.macs {
		note := claimOf(at, time.UnixMilli(now))
		if _, is := have[note.VNI][note.Key]; !is && have[note.VNI] != nil {
			have[note.VNI][note.Key] = note.Claim
		}
	}
	l.addresses(have)
	l.keeper.Set(endpoints, have)
	l.toldEnds(endpoints)
}

// toldEnds notes which endpoints the controllers are told of. If the host has lost one, the connection to a
// controller may have had that address, and nobody would notice for seconds that it is dead: meanwhile other hosts
// take nothing from the next address.
func (l *locating) toldEnds(endpoints []span.Endpoint) {
	var now []netip.Addr
	for _, e := range endpoints {
		now = append(now, e.Address)
	}
	gone := slices.DeleteFunc(l.ends, func(a netip.Addr) bool { return slices.Contains(now, a) })
	l.ends = now
	if len(gone) > 0 && len(now) > 0 && l.lost != nil {
		l.lost(gone)
	}
}

// own adds the ports of a switch. One that waits for its guest claims nothing: the guest runs elsewhere.
func (l *locating) own(sw *plan.Switch, have map[span.VNI]map[span.Key]span.Claim, now int64) {
	d := l.Active().Applied
	macs := compile.EffectiveMACs(sw, d.Facts)
	for i, p := range sw.Ports {
		if p.VNI == 0 || i >= len(macs) {
			continue
		}
		vni := span.VNI(p.VNI)
		if have[vni] == nil {
			have[vni] = map[span.Key]span.Claim{}
		}
		_, attached := d.Attachments[p.ID]
		w := l.state.WaitOf(p.ID)
		if !attached || macs[i].MAC.IsZero() || w != nil && !w.Awake {
			continue
		}
		c := span.Claim{Source: span.Port, Since: now}
		if n := l.state.NICOf(p.ID.Name); n != nil {
			c.Generation = l.generation(n)
		}
		at := insideOf(p, macs[i].MAC)
		c.Untagged = at.Inside == overlay.In(0)
		have[vni][segments.KeyOf(at)] = c
	}
}

// insideOf is the key of a port's own MAC: it is in the port's VLAN, and that of a trunk port may be in any.
func insideOf(p *plan.Port, mac plan.MAC) overlay.Key {
	key := overlay.Key{VNI: p.VNI, MAC: mac}
	if p.Policy == nil {
		return key
	}
	switch v := &p.Policy.VLAN.V; v.Mode {
	case plan.VLANTrunk:
	case plan.VLANAccess:
		key.Inside = overlay.In(v.ID)
	default:
		key.Inside = overlay.In(0)
	}
	return key
}

// Close saves what is known, for the agent that starts next.
func (l *locating) Close() error { return l.keeper.Save() }
