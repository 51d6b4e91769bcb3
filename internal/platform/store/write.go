package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// tx is what a request works with: a view, and how the state is laid out in it.
type tx struct {
	*view
	keys layout
	mem  *memory // for where to look first; what counts is read from the view
}

func onView(s *Store, eval func(*tx) error) func(*view) error {
	return func(v *view) error { return eval(&tx{view: v, keys: s.keys, mem: s.mem}) }
}

// do has a request carried out and waits for it.
func (s *Store) do(ctx context.Context, u use, eval func(*tx) error) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if err := s.Limits.bear(u); err != nil {
		if errors.Is(err, ErrNoSpace) {
			s.keeper.hurry()
		}
		return 0, err
	}
	r := &request{eval: onView(s, eval), done: make(chan result, 1)}
	select {
	case s.batch.queue <- r:
	case <-ctx.Done():
		return 0, &Unavailable{Cause: ctx.Err()}
	case <-s.ctx.Done():
		return 0, ErrClosed
	}
	var res result
	select {
	case res = <-r.done:
	case <-s.batchDone:
		select {
		case res = <-r.done:
		default:
			return 0, ErrClosed // it came into the queue after the last look
		}
	case <-ctx.Done():
		if r.taken.CompareAndSwap(false, true) {
			return 0, &Unavailable{Cause: ctx.Err()}
		}
		select { // it is being written
		case res = <-r.done:
		case <-time.After(s.opts.Timeout):
			return 0, &Unavailable{MaybeWritten: true, Cause: ctx.Err()}
		}
	}
	if res.err != nil {
		return 0, res.err
	}
	// Who wrote reads what they wrote.
	if err := s.mem.wait(ctx, res.rev); err != nil {
		s.log.Debug("a write is not in memory yet", "revision", res.rev, "err", err)
	}
	return res.rev, nil
}

// Write makes all of the changes in one transaction, or none of them. It returns the revision that they have. When an
// object is not at the version that its change was made on, the error is a *Conflict.
func (s *Store) Write(ctx context.Context, changes []Change) (int64, error) {
	if len(changes) == 0 || len(changes) > MaxChanges {
		return 0, fmt.Errorf("store: a transaction has 1 to %d changes, not %d", MaxChanges, len(changes))
	}
	seen, size := map[Key]bool{}, 0
	for i := range changes {
		c := &changes[i]
		if err := c.check(); err != nil {
			return 0, err
		}
		if seen[c.Key] {
			return 0, fmt.Errorf("store: %s is changed twice in one transaction", c.Key)
		}
		seen[c.Key] = true
		size += len(c.Doc) + len(c.Record)
	}
	if size > maxBytes {
		return 0, fmt.Errorf("store: the transaction has %d bytes, at most %d are allowed", size, maxBytes)
	}
	ids := make([]string, len(changes))
	for i, c := range changes {
		if ids[i] = c.ID; c.ID == "" {
			ids[i] = NewID()
		}
	}
	return s.do(ctx, useOf(changes), func(t *tx) error {
		for i := range changes {
			if err := t.change(&changes[i], ids[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes one change in a view.
func (t *tx) change(c *Change, id string) error {
	if c.Kind == KindPast {
		t.write(t.keys.past(c.base()), c.Record)
		return nil
	}
	key := t.keys.object(c.Key)
	now := t.get(key)
	version := now.rev
	if !now.exists() && version == pending {
		version = New // deleted by the same transaction
	}
	if c.IfVersion != Any && c.IfVersion != version {
		return &Conflict{Key: c.Key, Asked: c.IfVersion, Current: version}
	}
	for _, name := range c.Reserve {
		if err := t.reserve(name, c.Key.String()); err != nil {
			return err
		}
	}
	for _, name := range c.Free {
		t.free(name, c.Key.String())
	}
	if err := t.noneBound(c.Unbound); err != nil {
		return err
	}
	if c.Delete && c.Kind == KindPortGroup && !c.LeavesPorts {
		if p, err := t.pool(c.Name); err != nil || p.Ports > 0 {
			return errors.Join(err, &InUse{Group: c.Name, Ports: p.Ports})
		}
	}
	switch {
	case c.Delete:
		t.del(key)
	case now.exists():
		t.put(key, encode(headOf(now.value), c.Doc))
	default:
		t.put(key, encode(newHead(id), c.Doc))
	}
	return nil
}
