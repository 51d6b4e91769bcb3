package probes

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/fabric"
	"heddle/internal/fabric/wire"
)

// Times of a hub.
const (
	// judgeEvery is how often results are looked at.
	judgeEvery = 2 * time.Second
	// linger is how long a host stays in the layout that has lost its connection.
	linger = 15 * time.Second
	// settle is how long a host has to be connected until what others find out about its uplinks counts: the probes
	// that were lost while its agent was started anew do not show a fault of the network.
	settle = 12 * time.Second
	// restEvery is how often results are looked at that have not changed.
	restEvery = 10 * time.Second
	// mostShare bounds what looking costs: one part in so many of a CPU's time.
	mostShare = 20
)

// Options are what a hub needs.
type Options struct {
	Log *slog.Logger
	// Secret is the cluster's, from which the keys of probes are made.
	Secret []byte
	// Connected are the hosts that are connected to this controller and whose agents are of another version, by their
	// ids, with since when; nil for nobody. It is called without the hub's lock, and takes that of whoever knows them.
	Connected func() map[string]Connected
	// Absent are the names of the cluster's hosts that are not connected to this controller; nil for none. It is called
	// as Connected is.
	Absent func() map[string]bool
	// Others are the ids of the other controllers; nil for none. It is called as Connected is.
	Others func() []string
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Connected is a host whose agent is of another version, whether or not it takes part in probes.
type Connected struct {
	Name  string
	Since time.Time
}

// Hub is safe for concurrent use.
type Hub struct {
	Options
	start string

	mu        sync.Mutex
	hosts     map[string]*host
	followers map[string]*follower
	mute      map[string][]string  // by other controller: the names of its hosts that take no part in probes
	here      map[string]Connected // those of another version that are connected to this controller
	absence   absence
	version   uint64 // rises with every change of a host
	dirty     bool
	heard     map[string]heard // by other controller
	print     uint64           // of the members of the layout
	epoch     uint64
	splits    []fabric.Split
	bridged   []fabric.Split // those that the layout was made with
	looked    time.Time
	lasting   map[string]time.Time // since when there is a finding
	layout    *fabric.Layout
	verdict   *fabric.Verdict
	said      map[string]string // texts of the findings that were logged, by key
}

// host is what one host said last.
type host struct {
	id, name string
	members  []fabric.Member
	able     []string
	results  []fabric.Result
	deaf     []fabric.Deaf
	tunnels  []fabric.Tunnel
	uplinks  *controllerv1.ProbeUplinks
	found    *controllerv1.ProbeResults
	at       string // the controller; "" for this one
	since    time.Time
	gone     time.Time // zero while it is connected
	version  uint64
}

// heard is how far another controller was read.
type heard struct {
	start string
	after uint64
}

// Host is who a host is.
type Host struct{ ID, Name string }

// Stream is a host's.
type Stream interface {
	Receive() (*controllerv1.FollowProbesRequest, error)
	Send(*controllerv1.FollowProbesResponse) error
}

// follower is a host that is connected here.
type follower struct {
	host Host
	end  func(error)
	wake chan struct{} // holds one token when something may have to be sent
	// What it was sent, as it was made; "" for nothing.
	keys, tasks, findings string
}

// New makes a hub. Run runs it.
func New(o Options) *Hub {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Hub{Options: o, start: rand.Text(), hosts: map[string]*host{}, followers: map[string]*follower{},
		heard: map[string]heard{}, mute: map[string][]string{}, said: map[string]string{},
		layout:  fabric.NewLayout(nil, 0, nil),
		verdict: &fabric.Verdict{}}
}

// Run looks at what hosts say until ctx ends.
func (h *Hub) Run(ctx context.Context) {
	pause := judgeEvery
	for {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		began := time.Now()
		h.look()
		pause = max(judgeEvery, time.Since(began)*mostShare)
	}
}

// ErrAgain ends the connection of a host that has connected again.
var ErrAgain = errors.New("the host has connected again")

// Follow hands a host whom to probe, and takes what it says, until ctx or the stream ends. first is its first message.
func (h *Hub) Follow(ctx context.Context, who Host, first *controllerv1.FollowProbesRequest, stream Stream) error {
	if first.GetUplinks() == nil {
		return errors.New("the first message has the host's uplinks")
	}
	if err := fits(first); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := &follower{host: who, end: cancel, wake: make(chan struct{}, 1)}
	h.arrive(f)
	defer h.leave(f)
	h.take(f, first)
	go func() {
		for {
			m, err := stream.Receive()
			if err == nil {
				err = fits(m)
			}
			if err != nil {
				cancel(err)
				return
			}
			h.take(f, m)
		}
	}()
	for {
		if m := h.next(f); m != nil {
			if err := stream.Send(m); err != nil {
				return err
			}
		}
		select {
		case <-f.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (h *Hub) arrive(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if old := h.followers[f.host.ID]; old != nil {
		old.end(ErrAgain)
	}
	h.followers[f.host.ID] = f
	one := h.hosts[f.host.ID]
	if one == nil || !one.gone.IsZero() || one.at != "" {
		h.hosts[f.host.ID] = &host{id: f.host.ID, name: f.host.Name, since: h.Now()}
	}
	h.changed(f.host.ID)
}

func (h *Hub) leave(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.followers[f.host.ID] != f {
		return
	}
	delete(h.followers, f.host.ID)
	if one := h.hosts[f.host.ID]; one != nil && one.at == "" {
		one.gone = h.Now()
		h.changed(f.host.ID)
	}
}

// Remove forgets a host that was taken out of the cluster.
func (h *Hub) Remove(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.followers[id]; f != nil {
		f.end(errors.New("the host was taken out of the cluster"))
	}
	if one := h.hosts[id]; one != nil {
		one.gone = h.Now().Add(-linger)
		h.changed(id)
	}
}

// changed notes that what a host says is another. The caller holds the lock.
func (h *Hub) changed(id string) {
	h.version++
	h.hosts[id].version, h.dirty = h.version, true
}

// take takes in what a host says.
func (h *Hub) take(f *follower, m *controllerv1.FollowProbesRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one := h.hosts[f.host.ID]
	if h.followers[f.host.ID] != f || one == nil {
		return
	}
	one.set(m.GetUplinks(), m.GetResults())
	h.changed(one.id)
}

// set takes over what is not unset.
func (o *host) set(uplinks *controllerv1.ProbeUplinks, found *controllerv1.ProbeResults) {
	if uplinks != nil {
		o.uplinks, o.members = uplinks, wire.ReadUplinks(o.id, o.name, uplinks)
		o.able = wire.ReadAbilities(uplinks)
	}
	if found != nil {
		o.found = found
		o.results, o.deaf = wire.ReadResults(o.id, found)
		o.deaf = slices.DeleteFunc(o.deaf, func(d fabric.Deaf) bool { return !o.has(d.To) })
		o.tunnels = wire.ReadTunnels(o.id, o.name, found.GetTunnels())
	}
}

// look makes the layout and the verdict anew, where they may be others.
func (h *Hub) look() {
	var here map[string]Connected
	if h.Connected != nil {
		here = h.Connected()
	}
	h.mu.Lock()
	h.here = here
	now := h.Now()
	if !h.dirty && now.Sub(h.looked) < restEvery {
		h.mu.Unlock()
		return
	}
	h.looked, h.dirty = now, false
	h.mu.Unlock()
	absent, others := h.notHere()
	h.mu.Lock()
	h.absence.set(absent, others)
	g := h.gather(now)
	print, epoch := fabric.Fingerprint(g.all), fabric.Epoch(now.Unix())
	layout, splits := h.layout, h.splits
	same := print == h.print && epoch == h.epoch && sameSplits(splits, h.bridged)
	h.mu.Unlock()
	verdict := fabric.Judge(g.steady, g.results, g.deaf)
	verdict.AddTunnels(g.tunnels)
	if !same {
		layout = fabric.NewLayout(g.all, epoch, splits)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold(verdict, now)
	h.print, h.epoch, h.layout, h.bridged, h.verdict, h.splits = print, epoch, layout, splits, verdict, verdict.Splits
	h.log()
	for _, f := range h.followers {
		f.poke()
	}
}

func sameSplits(a, b []fabric.Split) bool {
	return slices.EqualFunc(a, b, func(x, y fabric.Split) bool {
		return x.Switch == y.Switch && x.VLAN == y.VLAN && slices.EqualFunc(x.Parts, y.Parts, slices.Equal)
	})
}

// gathered is what all hosts say: all uplinks, and those that count by now with the results of their hosts.
type gathered struct {
	all, steady []fabric.Member
	results     []fabric.Result
	deaf        []fabric.Deaf
	tunnels     []fabric.Tunnel
}

// gather is what all hosts say. The caller holds the lock.
func (h *Hub) gather(now time.Time) (g gathered) {
	ids := make([]string, 0, len(h.hosts))
	for id := range h.hosts {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		one := h.hosts[id]
		if !one.gone.IsZero() && now.Sub(one.gone) > linger {
			delete(h.hosts, id)
			continue
		}
		g.all = append(g.all, one.members...)
		if one.gone.IsZero() && now.Sub(one.since) >= settle {
			g.steady = append(g.steady, one.members...)
			g.results, g.deaf = append(g.results, one.results...), append(g.deaf, one.deaf...)
			g.tunnels = append(g.tunnels, one.tunnels...)
		}
	}
	mute, away := h.silent(now), h.away(now)
	for i := range g.tunnels {
		g.tunnels[i].Mute, g.tunnels[i].Away = mute[g.tunnels[i].PeerName], away[g.tunnels[i].PeerName]
	}
	return g
}

// log says which findings are new, and which are gone. The caller holds the lock.
func (h *Hub) log() {
	now := map[string]string{}
	for _, f := range h.verdict.Findings {
		now[f.Key()] = f.Text
		switch {
		case h.said[f.Key()] != "":
		case f.Note:
			h.Log.Info("the physical network: "+f.Text, "remedy", f.Remedy)
		default:
			h.Log.Warn("the physical network: "+f.Text, "remedy", f.Remedy)
		}
	}
	for key, text := range h.said {
		if now[key] == "" {
			h.Log.Info("the physical network: no longer: " + text)
		}
	}
	h.said = now
}

func (f *follower) poke() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Verdict is what follows from all that hosts said, and how many hosts take part.
func (h *Hub) Verdict() (*fabric.Verdict, int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, one := range h.hosts {
		if one.gone.IsZero() && len(one.members)+len(one.tunnels) > 0 {
			n++
		}
	}
	return h.verdict, n
}
