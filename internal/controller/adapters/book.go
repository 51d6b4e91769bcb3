package adapters

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// Options are what a book needs.
type Options struct {
	Log *slog.Logger
	// Bindings are the static ports that are bound; nil for none.
	Bindings Bindings
	// Linger is for how long counts what another controller said last that does not answer any more.
	Linger time.Duration
}

// Book knows which adapters run where.
type Book struct {
	Options
	// Starts are those that are being connected.
	Starts Starts

	mu      sync.Mutex
	index   index
	hosts   map[string]*host      // by id
	moving  map[part.Adapter]bool // whose ports are being bound elsewhere
	sharing sharing
	changed chan struct{} // closed and replaced when something changes that somebody may wait for
}

// host is one of the cluster.
type host struct {
	id, name string
	conn     *part.Conn // nil where it is not connected to this controller
	// running are the adapters that it reports as running, silent those of ports whose guests do not run there, marks
	// are of those that run elsewhere too; arrivals are when migrations were noticed.
	running  map[part.Adapter]port
	silent   map[part.Adapter]port
	marks    map[part.Adapter]Mark
	arrivals map[part.Adapter]time.Time
	// told are the marks that it was told by this connection; nil before the first message.
	told map[part.Adapter]Mark
	asking
}

// poke has a host told what is new, if it is connected here.
func poke(h *host) {
	if h.conn != nil {
		h.conn.Poke()
	}
}

// running are the adapters that a host reports as running.
func running(h *host) map[part.Adapter]bool {
	all := make(map[part.Adapter]bool, len(h.running))
	for n := range h.running {
		all[n] = true
	}
	return all
}

// New is a book without hosts.
func New(o Options) *Book {
	if o.Bindings == nil {
		o.Bindings = none{}
	}
	return &Book{Options: o, index: newIndex(), hosts: map[string]*host{}, moving: map[part.Adapter]bool{},
		sharing: newSharing(), changed: make(chan struct{})}
}

// wake wakes who waits for a change. The caller holds the lock.
func (b *Book) wake() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Joined implements part.Joiner.
func (b *Book) Joined(id, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts[id] == nil {
		b.hosts[id] = &host{id: id}
	}
	b.hosts[id].name = name
	b.wake()
}

// Remove implements part.Remover.
func (b *Book) Remove(id string) {
	b.Starts.removed(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil {
		return
	}
	delete(b.hosts, id)
	b.judge(b.index.reported(h, nil))
	b.wake()
}

// Arrival is what a host says of adapters when it connects.
type Arrival struct {
	// Counts are the ports of its report that count; Reported says that there is one.
	Counts   []*controllerv1.HostPort
	Reported bool
	// Brings are the ports with the marks that it had from a controller before.
	Brings []*controllerv1.HostPort
	// Starting are the adapters that it is connecting.
	Starting []*controllerv1.ClaimedAdapter
}

// Arrived takes in a host that connects. What it reported before it was away counts again.
func (b *Book) Arrived(id string, c *part.Conn, a Arrival) {
	b.Starts.Arrived(id, nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil {
		return
	}
	h.conn, h.told, h.asking = c, nil, asking{}
	if a.Reported {
		b.Starts.reported(id, a.Counts)
		b.judge(b.index.reported(h, a.Counts))
	}
	b.resume(h, a.Brings)
	b.Starts.Arrived(id, a.Starting)
	b.judge(running(h))
	b.wake()
}

// Left takes in that a connection has ended.
func (b *Book) Left(id string, c *part.Conn) {
	b.Starts.left(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || h.conn != c {
		return
	}
	h.conn = nil
	b.judge(running(h))
	b.wake()
}

// Reported takes in the ports that a host has by a whole report.
func (b *Book) Reported(id string, ports []*controllerv1.HostPort) {
	b.take(id, ports, func(h *host) map[part.Adapter]bool { return b.index.reported(h, ports) })
}

// Amended takes in what is another since a host's last report.
func (b *Book) Amended(id string, put []*controllerv1.HostPort, gone []*controllerv1.HostPortKey) {
	b.take(id, put, func(h *host) map[part.Adapter]bool { return b.index.amended(h, put, gone) })
}

func (b *Book) take(id string, ports []*controllerv1.HostPort, do func(*host) map[part.Adapter]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil {
		b.Starts.reported(id, ports)
		b.judge(do(h))
		b.wake()
	}
}

// Hear implements part.Hearer: a host says what came of adapters that it was connecting, and that it has looked anew.
// It is called behind Reported and Amended with the same message.
func (b *Book) Hear(id string, c *part.Conn, m *controllerv1.FollowSliceRequest) {
	b.Starts.ended(id, m.GetConnected())
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.hosts[id]; h != nil && h.conn == c {
		b.looked(h, m.GetReported())
		b.wake()
	}
}

// Objects implements part.Speaker: a host is told which of its adapters are in conflict, and when it is to look at its
// ports anew.
func (b *Book) Objects(id string, c *part.Conn, m part.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.hosts[id]
	if h == nil || h.conn != c {
		return
	}
	if marks := newMarks(h); marks != nil {
		m().Conflicts = marks
	}
	if h.anewSent != h.anew {
		h.anewSent = h.anew
		m().ReportAnew = h.anew
	}
}

// Judge looks at adapters anew, as their static ports are others.
func (b *Book) Judge(adapters map[part.Adapter]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.judge(adapters)
	b.wake()
}

// Port is the port of an adapter, as a host has reported it last.
type Port struct {
	Host               string // its id
	Switch, Name       string
	Group              string
	Generation         uint64
	Runs, Disconnected bool
}

// Ports are the ports of an adapter, those by which its guest runs first.
func (b *Book) Ports(n part.Adapter) (list []Port) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := func(h *host, p port, runs bool) Port {
		return Port{h.id, p.sw, p.name, p.group, p.gen, runs, h.conn == nil}
	}
	for _, h := range b.index.running[n] {
		list = append(list, of(h, h.running[n], true))
	}
	for _, h := range b.index.silent[n] {
		list = append(list, of(h, h.silent[n], false))
	}
	return list
}

// RunsOn are the ports by which an adapter runs on hosts that are connected here, by the hosts' names.
func (b *Book) RunsOn(n part.Adapter) (list []Port) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.index.on(n) {
		p := h.running[n]
		list = append(list, Port{h.id, p.sw, p.name, p.group, p.gen, true, false})
	}
	return list
}

// Holder is the static port that an adapter has, nil for none; elsewhere says that it runs on another host than this
// one, or is being connected there. A VM that was stopped there a moment ago may not be reported yet: that is waited
// for until ctx ends, unless the guest arrives.
func (b *Book) Holder(ctx context.Context, id string, n part.Adapter, incoming bool) (has *Binding,
	elsewhere string) {
	for {
		b.mu.Lock()
		has, elsewhere = b.holder(id, n)
		changed := b.changed
		b.mu.Unlock()
		if elsewhere == "" || incoming {
			return has, elsewhere
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return has, elsewhere
		}
	}
}

// holder is Holder at this moment. The caller holds the lock.
func (b *Book) holder(id string, n part.Adapter) (has *Binding, elsewhere string) {
	has = b.Bindings.Of(n)
	for _, other := range b.index.on(n) {
		if other.id != id {
			elsewhere = fmt.Sprintf("adapter %s of VM %s runs on host %s", n.Name, n.VM, other.name)
		}
	}
	if has != nil && elsewhere == "" {
		if was := b.hosts[has.Host]; was != nil && was.id != id && was.conn != nil && b.Starts.On(was.id, n) {
			elsewhere = StartsText(n, was.name)
		}
	}
	return has, elsewhere
}
