package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
)

// ClaimRequest asks for a static port for an adapter of a virtual machine.
type ClaimRequest struct {
	PortGroup string // SWITCH/GROUP
	// Port is the port that is wanted; empty takes the one that the adapter has, or any unbound one.
	Port string
	Binding
	// Move lets the port come along when it is bound to the same adapter on another host.
	Move bool
	// Was, if not nil, is the binding that the claim rests on: a port whose host or generation is another by now, or
	// which its host has claimed again, is refused.
	Was *Binding
	// Spare leaves the ports from before a restore to those who have had them since the snapshot, and come for them
	// yet; it takes one of those only where the group has no other.
	Spare bool
	// Limit is how many ports an elastic port group may have: it grows when no port is free. 0 = it doesn't grow.
	Limit int
}

// NoFreePort is returned when a port group has no unbound port, and can't grow.
type NoFreePort struct {
	Group string
	Ports int
}

func (n *NoFreePort) Error() string {
	return fmt.Sprintf("port group %s has no free port: all %d are bound", n.Group, n.Ports)
}

// NotFound is returned for a port or a port group that there isn't, and for a binding that there isn't.
type NotFound struct{ What string }

func (n *NotFound) Error() string { return "there is no " + n.What }

// InUse is returned when what shall be removed has bound ports.
type InUse struct {
	Group string
	Ports int
}

func (u *InUse) Error() string {
	return fmt.Sprintf("port group %s has %d ports that are in use or not removed", u.Group, u.Ports)
}

// grow is how many ports an elastic port group gets at once.
const grow = 8

// Claim binds a port. One transaction compares the port, its adapter, MAC and VNI, so that whatever other controllers
// do at the same time, a port has one owner and an adapter one port. A claim that is repeated changes nothing but which
// claim the binding is of: a release that was made before it, and is carried out after it, is refused. Nothing is
// claimed after ctx has ended, unless that was under way.
func (s *Store) Claim(ctx context.Context, r ClaimRequest) (Port, error) {
	if r.Host == "" || r.VM == "" || r.Adapter == "" {
		return Port{}, errors.New("store: a claim names the host, the VM and its adapter")
	}
	if _, ok := chunkOf(r.Port); r.Port != "" && !ok {
		return Port{}, &NotFound{"port " + r.Port}
	}
	var got *Port
	claim := func(t *tx) (err error) {
		if err := ctx.Err(); err != nil {
			return &Unavailable{Cause: err}
		}
		got, err = t.claim(&r)
		return err
	}
	_, err := s.do(ctx, claim)
	var none *NoFreePort
	if errors.As(err, &none) {
		// Which chunks have free ports is known from memory alone, which may be behind.
		if err := s.Sync(ctx); err != nil {
			return Port{}, err
		}
		_, err = s.do(ctx, claim)
	}
	if err != nil {
		return Port{}, err
	}
	return *got, nil
}

func (t *tx) claim(r *ClaimRequest) (*Port, error) {
	if !t.get(t.keys.object(Key{KindPortGroup, r.PortGroup})).exists() {
		return nil, &NotFound{"port group " + r.PortGroup}
	}
	has, err := t.holds(nicIndex(&r.Binding))
	if err != nil {
		return nil, err
	}
	c, p, err := t.choose(r, has)
	if err != nil {
		return nil, err
	}
	if b := p.Binding; b != nil && b.Host == r.Host && b.Claim.after(r.Claim) {
		return p, nil // the host has claimed it again since
	}
	if err := t.indexBinding(p, r); err != nil {
		return nil, err
	}
	binding := r.Binding
	p.Binding = &binding
	return p, t.putPort(c, p)
}

// choose finds the port that a claim is about, and refuses one that is somebody else's.
func (t *tx) choose(r *ClaimRequest, has *holder) (*chunk, *Port, error) {
	switch {
	case has != nil && (has.Group != r.PortGroup || r.Port != "" && r.Port != has.Port):
		return nil, nil, t.taken("adapter", r.VM+"/"+r.Adapter, has)
	case r.Port == "" && has == nil:
		return t.unbound(r)
	}
	id := r.Port
	if has != nil {
		id = has.Port
	}
	c, p, err := t.port(r.PortGroup, id)
	if err != nil {
		return nil, nil, err
	}
	if p == nil {
		return nil, nil, &NotFound{"port " + id + " in port group " + r.PortGroup}
	}
	if b := p.Binding; b != nil && (!b.sameNIC(&r.Binding) || b.Host != r.Host && !r.Move) {
		return nil, nil, &Taken{What: "port", Name: id, Group: r.PortGroup, Port: id, Binding: b}
	}
	if b := p.Binding; r.Was != nil && !b.still(r.Was) {
		return nil, nil, &Taken{What: "port", Name: id, Group: r.PortGroup, Port: id, Binding: b}
	}
	return c, p, nil
}

// taken names who has something, with their binding.
func (t *tx) taken(what, name string, h *holder) error {
	err := &Taken{What: what, Name: name, Group: h.Group, Port: h.Port}
	if _, p, e := t.port(h.Group, h.Port); e == nil && p != nil {
		err.Binding = p.Binding
	}
	return err
}

// port reads a port of a group; nil when there is none.
func (t *tx) port(group, id string) (*chunk, *Port, error) {
	number, ok := chunkOf(id)
	if !ok {
		return nil, nil, nil
	}
	c, err := t.chunk(group, number)
	if c == nil || err != nil {
		return nil, nil, err
	}
	p, err := c.get(id)
	return c, p, err
}

func (t *tx) chunk(group string, number int64) (*chunk, error) {
	key := chunkKey(group, number)
	e := t.get(t.keys.object(key))
	if !e.exists() {
		return nil, nil
	}
	o, err := decode(key, e.value, e.rev)
	if err != nil {
		return nil, err
	}
	return decodeChunk(key.Name, o.Doc)
}

// putChunk writes a chunk; one without ports is removed, and its number never used again.
func (t *tx) putChunk(c *chunk) error {
	change := Change{Key: chunkKey(c.group, c.number), IfVersion: Any}
	if change.Delete = c.ports() == 0 && c.next == chunkPorts; !change.Delete {
		change.Doc = c.encode()
	}
	return t.change(&change, "ports-"+strconv.FormatInt(c.number, 10))
}

func (t *tx) putPort(c *chunk, p *Port) error {
	if err := c.set(p); err != nil {
		return err
	}
	return t.putChunk(c)
}

// unbound takes a free port. The group grows when it has none and may.
func (t *tx) unbound(r *ClaimRequest) (*chunk, *Port, error) {
	if r.Spare {
		first, err := t.number("chunksFrom")
		if err != nil {
			return nil, nil, err
		}
		c, p, err := t.unboundFrom(r, first)
		if err == nil && p == nil {
			c, p, err = t.grown(r)
		}
		var none *NoFreePort
		if !errors.As(err, &none) {
			return c, p, err
		}
	}
	c, p, err := t.unboundFrom(r, 0)
	if err == nil && p == nil {
		return t.grown(r)
	}
	return c, p, err
}

// unboundFrom takes a free port of a chunk from that number on, nil for none: of one by chance, so that controllers
// seldom want the same.
func (t *tx) unboundFrom(r *ClaimRequest, from int64) (*chunk, *Port, error) {
	candidates := t.mem.chunks(r.PortGroup, withFree)
	rand.Shuffle(len(candidates), func(i, j int) { candidates[i], candidates[j] = candidates[j], candidates[i] })
	if number, ok := t.near(r.PortGroup); ok {
		candidates = append([]int64{number}, candidates...)
	}
	candidates = slices.DeleteFunc(candidates, func(n int64) bool { return n < from })
	for i, number := range candidates {
		if i > MaxChanges/4 { // a transaction compares so many keys, and all of these were full after all
			break
		}
		c, err := t.chunk(r.PortGroup, number)
		if err != nil {
			return nil, nil, err
		}
		if c != nil && len(c.free) > 0 {
			t.view.chunks[r.PortGroup] = number
			p, err := c.get(c.first())
			return c, p, err
		}
	}
	return nil, nil, nil
}

// grown adds ports to an elastic group and returns one of them.
func (t *tx) grown(r *ClaimRequest) (*chunk, *Port, error) {
	have, err := t.pool(r.PortGroup)
	if err != nil {
		return nil, nil, err
	}
	room := min(r.Limit-have.Ports, grow)
	if room <= 0 {
		return nil, nil, &NoFreePort{Group: r.PortGroup, Ports: have.Ports}
	}
	c, added, err := t.addPorts(r.PortGroup, room)
	if err != nil {
		return nil, nil, err
	}
	t.setPool(r.PortGroup, pool{Ports: have.Ports + added})
	p, err := c.get(c.first())
	return c, p, err
}

// addPorts adds ports to a chunk of the group that has places, or to a new one, and returns that chunk.
func (t *tx) addPorts(group string, n int) (*chunk, int, error) {
	first, err := t.number("chunksFrom")
	if err != nil {
		return nil, 0, err
	}
	number, ok := t.near(group)
	places := slices.DeleteFunc(t.mem.chunks(group, withPlaces), func(n int64) bool { return n < first })
	if !ok && len(places) > 0 {
		number, ok = places[0], true
	}
	if ok && number >= first {
		c, err := t.chunk(group, number)
		if err != nil {
			return nil, 0, err
		}
		if c != nil && c.next < chunkPorts {
			added := c.add(n)
			t.view.chunks[group] = number
			return c, added, t.putChunk(c)
		}
	}
	c, err := t.newChunk(group)
	if err != nil {
		return nil, 0, err
	}
	added := c.add(n)
	t.view.chunks[group] = c.number
	return c, added, t.putChunk(c)
}

// number is a number of a chunk that is kept about them all: the next one, or the first that still gets ports after a
// restore. It is 1 where nothing is kept.
func (t *tx) number(of string) (int64, error) {
	e := t.get(t.keys.meta(of))
	if !e.exists() {
		return 1, nil
	}
	n, err := strconv.ParseInt(string(e.value), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("store: the number of ports (%s): %w", of, err)
	}
	return n, nil
}

// newChunk takes the next number of all: a port's identifier is its own in the whole cluster, forever.
func (t *tx) newChunk(group string) (*chunk, error) {
	next, err := t.number("chunks")
	if err != nil {
		return nil, err
	}
	t.put(t.keys.meta("chunks"), []byte(strconv.FormatInt(next+1, 10)))
	return decodeChunk(chunkKey(group, next).Name, []byte(`{}`))
}

// indexBinding writes what only this port may have, and gives back what it had before.
func (t *tx) indexBinding(p *Port, r *ClaimRequest) error {
	me := holder{Group: r.PortGroup, Port: p.ID}
	if r.VNI != 0 {
		owner := Key{KindPortGroup, r.PortGroup}.String()
		var other *Reserved
		if err := t.reserve(VNIIndex(r.VNI), owner); errors.As(err, &other) {
			return &Taken{What: "VNI", Name: strconv.FormatUint(uint64(r.VNI), 10), Group: other.Owner}
		}
	}
	if r.MAC != "" {
		has, err := t.holds(macIndex(r.PortGroup, &r.Binding))
		if err != nil {
			return err
		}
		if has != nil && *has != me {
			return t.taken("MAC", r.MAC, has)
		}
		t.hold(macIndex(r.PortGroup, &r.Binding), me)
	}
	if old := p.Binding; old != nil && old.MAC != "" && macIndex(p.Group, old) != macIndex(r.PortGroup, &r.Binding) {
		t.drop(t.keys.index(macIndex(p.Group, old)))
	}
	if p.Binding == nil {
		t.hold(nicIndex(&r.Binding), me)
	}
	return nil
}

// unindex gives back what a bound port had. Nothing of it is compared: only who changes the port changes that.
func (t *tx) unindex(p *Port) {
	t.drop(t.keys.index(nicIndex(p.Binding)))
	if p.Binding.MAC != "" {
		t.drop(t.keys.index(macIndex(p.Group, p.Binding)))
	}
}

// ReleaseRequest gives up a port. VM and Adapter have to be those that it is bound to, and Host, when it is given, the
// one where it is: what came from a host after the port moved on is refused.
type ReleaseRequest struct {
	PortGroup, Port   string
	VM, Adapter, Host string
	// Claim, if not zero, is where the release stands among the claims of the host: what its agent has claimed after
	// it,
	// in the same run or a later one, stays bound.
	Claim Claim
	// Was, if not nil, is the binding that is given up, as in a ClaimRequest.
	Was *Binding
}

// still reports whether a binding is the one that it was, nil for none.
func (b *Binding) still(was *Binding) bool {
	return b != nil && b.Host == was.Host && b.Generation == was.Generation && b.Claim == was.Claim
}

// of reports whether a release is one of this binding.
func (r *ReleaseRequest) of(b *Binding) bool {
	return b.VM == r.VM && b.Adapter == r.Adapter && (r.Host == "" || r.Host == b.Host) && !b.Claim.after(r.Claim) &&
		(r.Was == nil || b.still(r.Was))
}

// Release makes a port unbound. Its own fields stay. It gives up no other binding than the one that the port has when
// the release is first tried, but those of earlier claims of the host; and none after ctx has ended, unless that was
// under way.
func (s *Store) Release(ctx context.Context, r ReleaseRequest) error {
	var first *Binding
	_, err := s.do(ctx, func(t *tx) error {
		if err := ctx.Err(); err != nil {
			return &Unavailable{Cause: err}
		}
		return t.release(&r, &first)
	})
	return err
}

// release makes a port unbound; first is the binding that it had when the release was first tried.
func (t *tx) release(r *ReleaseRequest, first **Binding) error {
	c, p, err := t.port(r.PortGroup, r.Port)
	if err != nil {
		return err
	}
	switch {
	case p == nil:
		return &NotFound{"port " + r.Port + " in port group " + r.PortGroup}
	case p.Binding == nil:
		return &NotFound{"binding of port " + r.Port}
	case !r.of(p.Binding), *first != nil && **first != *p.Binding && !r.Claim.after(p.Binding.Claim):
		return &Taken{What: "port", Name: r.Port, Group: r.PortGroup, Port: r.Port, Binding: p.Binding}
	}
	*first = p.Binding
	t.unindex(p)
	p.Binding = nil
	return t.putPort(c, p)
}

// EditPort changes a port's own fields. The function gets the port as it is, may be called several times, and returns
// the new document.
func (s *Store) EditPort(ctx context.Context, group, id string, edit func(Port) ([]byte, error)) error {
	_, err := s.do(ctx, func(t *tx) error {
		c, p, err := t.port(group, id)
		if err != nil {
			return err
		}
		if p == nil {
			return &NotFound{"port " + id + " in port group " + group}
		}
		if p.Doc, err = edit(*p); err != nil {
			return err
		}
		if err := checkPortDoc(p.Doc); err != nil {
			return err
		}
		return t.putPort(c, p)
	})
	return err
}

// GetPort returns a port as it is in memory.
func (s *Store) GetPort(group, id string) (Port, bool) {
	v := newView(func(key string) entry {
		e, _ := s.known(key)
		return e
	})
	t := &tx{view: v, keys: s.keys, mem: s.mem}
	_, p, err := t.port(group, id)
	if err != nil || p == nil {
		return Port{}, false
	}
	return *p, true
}
