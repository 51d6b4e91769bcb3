package store

import (
	"context"
	"encoding/json"
	"errors"
)

// stepChunks is how many chunks one transaction of a resize touches.
const stepChunks = 32

// checkPortDoc says what is wrong with a port's own fields.
func checkPortDoc(doc []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil || fields == nil {
		return errors.New("store: a port's fields are no JSON object")
	}
	if _, there := fields["binding"]; there {
		return errors.New("store: a port's binding is changed by a claim")
	}
	return nil
}

// Resize gives a port group so many static ports. Unbound ones are removed when it has more; when more than that are
// bound the error is an *InUse and those stay. Each transaction is made only while the object of guard is at its
// version: else the error is a *Conflict. nil asks for nothing.
func (s *Store) Resize(ctx context.Context, group string, ports int, guard *Change) error {
	if ports < 0 {
		return errors.New("store: a port group has no fewer than 0 ports")
	}
	if err := s.Sync(ctx); err != nil { // which chunks there are is known from memory
		return err
	}
	for {
		var left int
		_, err := s.do(ctx, ordinary, func(t *tx) (err error) {
			if err := t.still(guard); err != nil {
				return err
			}
			left, err = t.resizeStep(group, ports)
			return err
		})
		if err != nil || left == 0 {
			return err
		}
	}
}

// resizeStep adds or removes as many ports as one transaction can. It returns how many are still too few or too many.
func (t *tx) resizeStep(group string, ports int) (left int, err error) {
	if !t.get(t.keys.object(Key{KindPortGroup, group})).exists() {
		return 0, &NotFound{"port group " + group}
	}
	have, err := t.pool(group)
	if err != nil {
		return 0, err
	}
	before := have.Ports
	for range stepChunks {
		if have.Ports == ports {
			break
		}
		var n int
		if have.Ports < ports {
			_, n, err = t.addPorts(group, ports-have.Ports)
		} else if n, err = t.removeUnbound(group, have.Ports-ports); n == 0 && err == nil && have.Ports == before {
			return 0, &InUse{Group: group, Ports: have.Ports}
		}
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
		have.Ports += n
	}
	if have.Ports != before {
		t.setPool(group, have)
	}
	return max(ports-have.Ports, have.Ports-ports), nil
}

// removeUnbound removes free ports of one chunk and returns how many, as a negative number.
func (t *tx) removeUnbound(group string, n int) (int, error) {
	for _, number := range t.mem.chunks(group, withFree) {
		c, err := t.chunk(group, number)
		if err != nil {
			return 0, err
		}
		if c == nil || len(c.free) == 0 {
			continue
		}
		removed := 0
		for ; removed < n && len(c.free) > 0; removed++ {
			delete(c.free, c.last())
		}
		if c.ports() == 0 {
			c.next = chunkPorts // nothing is added to it again
		}
		return -removed, t.putChunk(c)
	}
	return 0, nil
}

// RemovePorts removes all ports of a port group, so that it can be deleted. With force bound ones go as well; without,
// the error is an *InUse. guard is as with Resize.
func (s *Store) RemovePorts(ctx context.Context, group string, force bool, guard *Change) error {
	if err := s.Sync(ctx); err != nil {
		return err
	}
	for {
		left := 0
		_, err := s.do(ctx, vital, func(t *tx) (err error) {
			if err := t.still(guard); err != nil {
				return err
			}
			left, err = t.removeStep(group, force)
			return err
		})
		if err != nil || left == 0 {
			return err
		}
	}
}

// removeStep removes one chunk and returns how many are left.
func (t *tx) removeStep(group string, force bool) (left int, err error) {
	chunks := t.mem.chunks(group, anyChunk)
	have, err := t.pool(group)
	if err != nil {
		return 0, err
	}
	if _, bound := t.mem.countPorts(group); bound > 0 && !force {
		return 0, &InUse{Group: group, Ports: bound}
	}
	for i, number := range chunks {
		c, err := t.chunk(group, number)
		if err != nil {
			return 0, err
		}
		if c == nil {
			continue
		}
		if len(c.bound) > 0 && !force {
			return 0, &InUse{Group: group, Ports: len(c.bound)}
		}
		for id := range c.bound {
			p, err := c.get(id)
			if err != nil {
				return 0, err
			}
			t.unindex(p)
		}
		t.setPool(group, pool{Ports: have.Ports - c.ports()})
		t.del(t.keys.object(chunkKey(group, number)))
		return len(chunks) - i - 1, nil
	}
	if have.Ports > 0 {
		t.setPool(group, pool{})
	}
	return 0, nil
}

// still refuses what rests on an object that is another by now.
func (t *tx) still(guard *Change) error {
	if guard == nil {
		return nil
	}
	if e := t.get(t.keys.object(guard.Key)); e.rev != guard.IfVersion {
		return &Conflict{Key: guard.Key, Asked: guard.IfVersion, Current: e.rev}
	}
	return nil
}
