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
	_, err := s.do(ctx, vital, claim)
	var none *NoFreePort
	if errors.As(err, &none) {
		// Which chunks have free ports is known from memory alone, which may be behind.
		if err := s.Sync(ctx); err != nil {
			return Port{}, err
		}
		_, err = s.do(ctx, vital, claim)
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
