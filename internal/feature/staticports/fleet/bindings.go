package fleet

import (
	"log/slog"
	"maps"
	"slices"
	"sync"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/adapters"
	"heddle/internal/controller/part"
	"heddle/internal/platform/store"
)

// Bindings are the static ports that are bound, as the store has them, by what they are looked for. They tell each host
// its own, and what became of its claims.
type Bindings struct {
	log *slog.Logger

	mu        sync.Mutex
	byAdapter map[part.Adapter]*adapters.Binding
	byHost    map[string]map[string]*adapters.Binding // by the host's id, then the port's
	chunks    map[string]chunk                        // by the object's name
	told      map[string]*told                        // by the ids of the hosts that are connected to this controller
}

// chunk is what is known of one object with ports.
type chunk struct {
	group string
	ports int // with unbound ones
	bound []*adapters.Binding
}

// told is what a host's connection was told.
type told struct {
	conn    *part.Conn
	ports   map[string]*adapters.Binding // nil before the first message
	answers []*controllerv1.PortAnswer   // to be sent
}

// NewBindings has no ports.
func NewBindings(log *slog.Logger) *Bindings {
	b := &Bindings{log: log, told: map[string]*told{}}
	b.reset()
	return b
}

func (b *Bindings) reset() {
	b.byAdapter, b.chunks = map[part.Adapter]*adapters.Binding{}, map[string]chunk{}
	b.byHost = map[string]map[string]*adapters.Binding{}
}

// Changed are the hosts, by their ids, and the adapters of which a static port is another.
type Changed struct {
	Hosts    map[string]bool
	Adapters map[part.Adapter]bool
}

// Take takes in objects with ports, and forgets all others if it is to begin anew.
func (b *Bindings) Take(events []store.Event, anew bool) Changed {
	b.mu.Lock()
	defer b.mu.Unlock()
	if anew {
		b.reset()
	}
	all := Changed{map[string]bool{}, map[part.Adapter]bool{}}
	for _, e := range events {
		if err := b.take(e.Name, e.Object, all); err != nil {
			b.log.Error("static ports in the store cannot be read", "ports", e.Name, "err", err)
		}
	}
	return all
}

// take takes in an object with ports, nil for one that is gone. The caller holds the lock.
func (b *Bindings) take(name string, o *store.Object, all Changed) (err error) {
	var ports store.Bindings
	if o != nil {
		if ports, err = store.DecodeBindings(o); err != nil {
			return err
		}
	}
	was := map[string]*adapters.Binding{}
	for _, p := range b.chunks[name].bound {
		was[p.ID] = p
	}
	now := chunk{group: ports.Group, ports: ports.Ports}
	for id, p := range ports.Bound {
		next := &adapters.Binding{ID: id, Group: ports.Group, Adapter: part.AdapterOf(p.VM, p.Adapter), Host: p.Host,
			MAC: p.MAC, Generation: p.Generation, Claim: p.Claim}
		if old := was[id]; old != nil && *old == *next {
			next = old
			delete(was, id)
		} else {
			all.Hosts[next.Host], all.Adapters[next.Adapter] = true, true
		}
		now.bound = append(now.bound, next)
	}
	for _, p := range was {
		b.drop(p)
		all.Hosts[p.Host], all.Adapters[p.Adapter] = true, true
	}
	for _, p := range now.bound {
		b.put(p)
	}
	if b.chunks[name] = now; o == nil {
		delete(b.chunks, name)
	}
	return nil
}

func (b *Bindings) put(p *adapters.Binding) {
	b.byAdapter[p.Adapter] = p
	if b.byHost[p.Host] == nil {
		b.byHost[p.Host] = map[string]*adapters.Binding{}
	}
	b.byHost[p.Host][p.ID] = p
}

func (b *Bindings) drop(p *adapters.Binding) {
	if b.byAdapter[p.Adapter] == p {
		delete(b.byAdapter, p.Adapter)
	}
	if delete(b.byHost[p.Host], p.ID); len(b.byHost[p.Host]) == 0 {
		delete(b.byHost, p.Host)
	}
}

// Of is the port of an adapter; nil for none.
func (b *Bindings) Of(a part.Adapter) *adapters.Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byAdapter[a]
}

// Port finds a bound port by its id; nil for none.
func (b *Bindings) Port(id string) *adapters.Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ports := range b.byHost {
		if p := ports[id]; p != nil {
			return p
		}
	}
	return nil
}

// On are the ports that are bound on a host, by their ids.
func (b *Bindings) On(host string) map[string]*adapters.Binding {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.byHost[host])
}

// GroupsOn are the port groups of the ports that are bound on a host, by the ports' ids.
func (b *Bindings) GroupsOn(host string) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	groups := make(map[string]string, len(b.byHost[host]))
	for id, p := range b.byHost[host] {
		groups[id] = p.Group
	}
	return groups
}

// Counts are how many static ports each port group has that has any.
func (b *Bindings) Counts() map[string]Count {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string]Count{}
	for _, c := range b.chunks {
		n := all[c.group]
		all[c.group] = Count{Ports: n.Ports + c.ports, Bound: n.Bound + len(c.bound)}
	}
	return all
}

// Connected implements part.Follower.
func (b *Bindings) Connected(id string, c *part.Conn, _ *controllerv1.FollowSliceRequest) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told[id] = &told{conn: c}
}

// Disconnected implements part.Follower.
func (b *Bindings) Disconnected(id string, c *part.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.told[id]; t != nil && t.conn == c {
		delete(b.told, id)
	}
}

// Answer has an answer to a claim sent, where the host still has the connection by which it claimed.
func (b *Bindings) Answer(id string, c *part.Conn, a *controllerv1.PortAnswer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.told[id]; t != nil && t.conn == c {
		t.answers = append(t.answers, a)
		c.Poke()
	}
}

// Objects implements part.Speaker: a host is told its static ports, and what became of its claims.
func (b *Bindings) Objects(id string, c *part.Conn, m part.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.told[id]
	if t == nil || t.conn != c {
		return
	}
	if ports := change(t, b.byHost[id]); ports != nil {
		m().Ports = ports
	}
	if len(t.answers) > 0 {
		m().Answers, t.answers = t.answers, nil
	}
}

// change is what has changed of the ports of a host since it was told; nil for nothing.
func change(t *told, now map[string]*adapters.Binding) *controllerv1.StaticPorts {
	out := &controllerv1.StaticPorts{Whole: t.ports == nil}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if t.ports[id] != now[id] {
			out.Put = append(out.Put, now[id].Message())
		}
	}
	for _, id := range slices.Sorted(maps.Keys(t.ports)) {
		if now[id] == nil {
			out.Removed = append(out.Removed, id)
		}
	}
	if !out.GetWhole() && len(out.GetPut())+len(out.GetRemoved()) == 0 {
		return nil
	}
	if t.ports = maps.Clone(now); t.ports == nil {
		t.ports = map[string]*adapters.Binding{}
	}
	return out
}
