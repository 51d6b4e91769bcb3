package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

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

// EditPort changes a port's own fields. The function gets the port as it is, may be called several times, and returns
// the new document.
func (s *Store) EditPort(ctx context.Context, group, id string, edit func(Port) ([]byte, error)) error {
	_, err := s.do(ctx, ordinary, func(t *tx) error {
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
