package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// ImportPorts makes static ports with the numbers that they had elsewhere, for a port group that does not count yet.
// Each transaction makes the change guard as well, which says that the import still goes on: when somebody else has
// made its object another, the error is a *Conflict. guard has the object's new version afterwards. A
// number that a port has here already is a *Taken; what was written before it stays, and RemovePorts removes it.
func (s *Store) ImportPorts(ctx context.Context, group string, ports []Port, guard *Change) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	chunks := map[int64][]Port{}
	for _, p := range ports {
		number, ok := chunkOf(p.ID)
		if !ok {
			return fmt.Errorf("store: %q is no number of a port", p.ID)
		}
		chunks[number] = append(chunks[number], p)
	}
	there := map[int64]string{}
	for _, o := range s.List(KindPorts) {
		if other, number, ok := parseChunkName(o.Name); ok {
			there[number] = other
		}
	}
	numbers := make([]int64, 0, len(chunks))
	for number, list := range chunks {
		if other, used := there[number]; used {
			return &Taken{What: "port", Name: list[0].ID, Group: other, Port: list[0].ID}
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	for _, number := range numbers {
		rev, err := s.do(ctx, ordinary, func(t *tx) error {
			if err := t.change(guard, cmp.Or(guard.ID, NewID())); err != nil {
				return err
			}
			return t.importChunk(group, number, chunks[number])
		})
		if err != nil {
			return err
		}
		guard.IfVersion = rev
	}
	return nil
}

// importChunk writes the ports of one chunk. No port is added to it later: which numbers it had given is not known.
func (t *tx) importChunk(group string, number int64, ports []Port) error {
	next, err := t.number("chunks")
	if err != nil {
		return err
	}
	if number >= next {
		t.put(t.keys.meta("chunks"), []byte(strconv.FormatInt(number+1, 10)))
	}
	if c, err := t.chunk(group, number); err != nil || c != nil {
		return cmp.Or(err, error(&Taken{What: "port", Name: ports[0].ID, Group: group, Port: ports[0].ID}))
	}
	c := &chunk{group: group, number: number, next: chunkPorts, free: map[string]json.RawMessage{},
		bound: map[string]json.RawMessage{}}
	for i := range ports {
		p := &ports[i]
		doc := p.Doc
		if len(doc) == 0 {
			doc = []byte(`{}`)
		}
		one := &Port{ID: p.ID, Group: group, Doc: doc}
		if p.Binding != nil {
			if err := t.importBinding(one, p.Binding); err != nil {
				return err
			}
		}
		if err := c.set(one); err != nil {
			return err
		}
	}
	have, err := t.pool(group)
	if err != nil {
		return err
	}
	t.setPool(group, pool{Ports: have.Ports + len(ports)})
	return t.putChunk(c)
}

// importBinding binds a port that is being written, if its adapter and MAC are nobody's yet.
func (t *tx) importBinding(p *Port, b *Binding) error {
	has, err := t.holds(nicIndex(b))
	if err != nil {
		return err
	}
	if has != nil {
		return t.taken("adapter", b.VM+"/"+b.Adapter, has)
	}
	r := &ClaimRequest{PortGroup: p.Group, Binding: *b}
	if err := t.indexBinding(p, r); err != nil {
		return err
	}
	binding := *b
	p.Binding = &binding
	return nil
}
