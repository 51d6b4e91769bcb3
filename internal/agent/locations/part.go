package locations

import (
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/segments"
	"heddle/internal/agent/state"
	"heddle/internal/dataplane"
	"heddle/internal/dataplane/compile"
	"heddle/internal/observe"
	"heddle/internal/observe/event"
	"heddle/internal/overlay"
	"heddle/internal/overlay/span"
	"heddle/internal/plan"
	"heddle/internal/uplinks"
)

// Kernel is the part of the dataplane that knows what is behind ports and tunnels.
type Kernel interface {
	MACsAt() (list []observe.MACEntry, at time.Time, err error)
	ForgetMACs(list []observe.MACEntry) (removed []observe.MACEntry, err error)
	Bindings() ([]overlay.Bound, error)
	Neighbours() (*dataplane.NeighbourReader, error)
	CounterReader() *dataplane.CounterReader
	Bind(sw string, all bool, put []overlay.Binding, removed []overlay.Address) error
	Unbind([]overlay.Bound) error
	Locate(sw string, all bool, put []overlay.Location, removed []overlay.Key) error
	Reached(sw string) overlay.Reach
}

// Host is what the part needs of its host. Its functions are called in the loop.
type Host struct {
	active.Reader
	Loop     *loop.Loop
	Log      *slog.Logger
	Events   *event.Bus
	Complain func(what string, err error)
	Kernel   func() Kernel
	// Defines reports whether the controllers define a switch.
	Defines func(sw string) bool
	// Wait is the wait of a port, over or not; nil for none.
	Wait func(plan.PortID) *state.Wait
	// GenerationOf is the generation of a port whose adapter is known; 0 for another one.
	GenerationOf func(port string) uint64
	// Settle reconciles: other endpoints are known.
	Settle func()
}

// Part is the host's part in overlay segments. Only the agent's loop uses it, unless a method says otherwise.
type Part struct {
	host Host

	keeper     *segments.Keeper // nil before Open
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

// New returns the part, which knows nothing yet.
func New(h Host) *Part { return &Part{host: h} }

// Open reads what was known when the process before ended. self is the host's id in its cluster; lost is called when
// the host has lost addresses of its endpoints.
func (l *Part) Open(dir string, self func() string, lost func([]netip.Addr)) {
	l.told, l.lost = map[string]map[compile.OverlaySegment]bool{}, lost
	l.nested = newNested()
	l.keeper = segments.New(segments.Options{Dir: dir, Self: self, Log: l.host.Log, Changed: l.changed})
}

// Talks are the conversations of this part with the controllers.
func (l *Part) Talks() []cluster.Talk {
	if l.keeper == nil {
		return nil
	}
	return []cluster.Talk{l.keeper.Talk()}
}

// changed has the loop take what the controllers said. It is called by any goroutine, and does not wait.
func (l *Part) changed() {
	if l.due.CompareAndSwap(false, true) {
		go l.host.Loop.Post(func() { l.due.Store(false); l.take() })
	}
}

// defined returns the switches with a tunnel that controllers define.
func (l *Part) defined() (list []*plan.Switch) {
	if l.keeper == nil {
		return nil
	}
	for _, sw := range l.host.Active().Plan.Switches {
		if sw.Tunnel != nil && l.IsDefined(sw.Name) {
			list = append(list, sw)
		}
	}
	return list
}

// IsDefined reports whether the controllers define a switch of this host.
func (l *Part) IsDefined(name string) bool { return l.keeper != nil && l.host.Defines(name) }

// Reach is what this host knows of the endpoints of others, for one switch: by its file, or by the controllers.
func (l *Part) Reach(sw *plan.Switch) overlay.Reach {
	if !l.IsDefined(sw.Name) {
		return overlay.Of(sw)
	}
	r := l.keeper.Reach(sw.VNIs())
	if l.keeper.Blank() {
		r = l.host.Kernel().Reached(sw.Name)
	}
	heard, _ := l.keeper.Hears()
	r.Learn = !heard && sw.Tunnel.Learning
	return r
}

// take tells the kernel what has changed: first which endpoints there are, then where MACs are.
func (l *Part) take() {
	c := l.keeper.Take()
	l.save()
	if c.Members {
		l.host.Settle()
	}
	for _, sw := range l.defined() {
		l.locate(sw, c)
	}
}

// locate tells the kernel of the segments of one switch.
func (l *Part) locate(sw *plan.Switch, c segments.Change) {
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
		err = l.host.Kernel().Locate(sw.Name, all, put, c.Removed)
	}
	if err == nil {
		err = l.bind(sw, all, c)
	}
	if err != nil {
		delete(l.told, sw.Name) // all of it is said again with the next tick
		l.host.Complain("tell the kernel where the MACs of overlay segments are", err)
		return
	}
	if all {
		l.told[sw.Name] = compile.OverlaySegments(sw)
	}
}

// Settled is called in the loop after each reconcile.
func (l *Part) Settled(uplinks.InForce) {
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

// Tick reads what was learned behind ports, and has what is known saved.
func (l *Part) Tick() {
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
func (l *Part) save() {
	if !l.saving.CompareAndSwap(false, true) {
		return // what comes meanwhile is saved with the next tick
	}
	go func() {
		defer l.saving.Store(false)
		if err := l.keeper.Save(); err != nil {
			l.host.Log.Error("what is known of overlay segments cannot be saved: it is unknown after a start without "+
				"controllers", "err", err)
		}
	}()
}

// listens reports whether MACs are learned behind some port of an overlay segment.
func (l *Part) listens() bool {
	for _, sw := range l.defined() {
		for _, p := range sw.Ports {
			if p.VNI != 0 && p.Policy != nil && p.Policy.Learning.Enabled.V {
				return true
			}
		}
	}
	return l.nested.any()
}

// say has the controllers told what this host has.
func (l *Part) say() {
	if l.keeper == nil || l.host.Active().Applied == nil {
		return
	}
	var endpoints []span.Endpoint
	have := map[span.VNI]map[span.Key]span.Claim{}
	now := time.Now().UnixMilli()
	for _, sw := range l.defined() {
		fact := l.host.Active().Applied.Facts[sw.Tunnel.ID]
		for _, a := range fact.Endpoints {
			endpoints = append(endpoints, span.Endpoint{Address: a, MTU: uint32(fact.MTU)})
		}
		l.own(sw, have, now)
	}
	for at := range l.nested.all() {
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
func (l *Part) toldEnds(endpoints []span.Endpoint) {
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
func (l *Part) own(sw *plan.Switch, have map[span.VNI]map[span.Key]span.Claim, now int64) {
	d := l.host.Active().Applied
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
		w := l.host.Wait(p.ID)
		if !attached || macs[i].MAC.IsZero() || w != nil && !w.Awake {
			continue
		}
		c := span.Claim{Source: span.Port, Since: now}
		c.Generation = l.host.GenerationOf(p.ID.Name)
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
func (l *Part) Close() error { return l.keeper.Save() }
