package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// maxBytes is how much one transaction writes at most; etcd refuses requests of 1.5 MiB.
const maxBytes = 1 << 20

// request is one caller's part of a transaction.
type request struct {
	// eval reads and writes the view; an error refuses the request and nobody else's. It may be called several times.
	eval func(v *view) error
	done chan result
	// taken is set by who has the request: the batcher that sends it, or the caller that gives up before.
	taken atomic.Bool
	err   error
}

type result struct {
	rev int64
	err error
}

// batcher puts the requests of several callers into one transaction, one after the other.
type batcher struct {
	client  *clientv3.Client
	base    func(key string) (entry, int64)
	seen    func() int64 // the revision that base knows
	collect time.Duration
	timeout time.Duration
	queue   chan *request
	// waiting were put off by the transaction before.
	waiting []*request
	// recent is what own transactions wrote that base doesn't know yet, by key.
	recent map[string]written
}

// written is a key's entry as of a revision.
type written struct {
	entry
	at int64
}

func (b *batcher) run(ctx context.Context) {
	for {
		batch := b.gather(ctx)
		if ctx.Err() != nil {
			b.refuse(batch)
			return
		}
		b.commit(ctx, batch)
	}
}

// refuse answers all that wait when the store is closed.
func (b *batcher) refuse(batch []*request) {
	for {
		for _, r := range append(batch, b.waiting...) {
			r.done <- result{err: ErrClosed}
		}
		batch, b.waiting = nil, nil
		select {
		case r := <-b.queue:
			batch = []*request{r}
		default:
			return
		}
	}
}

// gather waits for a request, and then for others as long as the first may wait.
func (b *batcher) gather(ctx context.Context) []*request {
	batch := b.waiting
	b.waiting = nil
	if len(batch) == 0 {
		select {
		case r := <-b.queue:
			batch = append(batch, r)
		case <-ctx.Done():
			return nil
		}
	}
	var end <-chan time.Time
	if b.collect > 0 {
		timer := time.NewTimer(b.collect)
		defer timer.Stop()
		end = timer.C
	}
	for len(batch) < MaxChanges {
		select {
		case r := <-b.queue:
			batch = append(batch, r)
			continue
		default:
		}
		if end == nil {
			return batch
		}
		select {
		case r := <-b.queue:
			batch = append(batch, r)
		case <-end:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// take leaves out requests whose callers have given up, and from then on has the others.
func take(batch []*request) (live []*request) {
	for _, r := range batch {
		if r.taken.CompareAndSwap(false, true) {
			live = append(live, r)
		}
	}
	return live
}

// commit writes what fits into one transaction and puts off the rest. When somebody else changed what it is built on,
// it is built again on what they wrote.
func (b *batcher) commit(ctx context.Context, batch []*request) {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	known := map[string]written{}
	batch, b.waiting = b.fit(batch, known)
	if batch = take(batch); len(batch) == 0 {
		return
	}
	for {
		v := b.evaluate(batch, known)
		compare, write, read := v.txn()
		resp, err := b.client.Txn(ctx).If(compare...).Then(write...).Else(read...).Commit()
		if err != nil {
			b.answer(batch, result{err: wrap(err)})
			return
		}
		if resp.Succeeded {
			b.remember(v, resp.Header.Revision)
			b.answer(batch, result{rev: resp.Header.Revision})
			return
		}
		learn(known, v, resp)
	}
}

// fit divides a batch into what fits into a transaction and what has to wait for the next.
func (b *batcher) fit(batch []*request, known map[string]written) (now, later []*request) {
	v := newView(func(key string) entry { return b.lookup(key, known) })
	for i, r := range batch {
		child := v.child()
		err := r.eval(child)
		if i > 0 && (len(v.reads) > MaxChanges || v.bytes+child.bytes > maxBytes) {
			return batch[:i], batch[i:]
		}
		if err == nil {
			v.merge(child)
		}
	}
	return batch, nil
}

// evaluate runs the requests on a fresh view. A batch that fitted at first may have grown by what others wrote; etcd
// says so then.
func (b *batcher) evaluate(batch []*request, known map[string]written) *view {
	v := newView(func(key string) entry { return b.lookup(key, known) })
	for _, r := range batch {
		child := v.child()
		if r.err = r.eval(child); r.err == nil {
			v.merge(child)
		}
	}
	return v
}

// lookup is the newest that is known of a key.
func (b *batcher) lookup(key string, known map[string]written) entry {
	e, at := b.base(key)
	if w, ok := b.recent[key]; ok && w.at > at {
		e, at = w.entry, w.at
	}
	if w, ok := known[key]; ok && w.at > at {
		e = w.entry
	}
	return e
}

// learn takes what a failed transaction has read.
func learn(known map[string]written, v *view, resp *clientv3.TxnResponse) {
	for k := range v.reads {
		known[k] = written{at: resp.Header.Revision}
	}
	for _, r := range resp.Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			known[string(kv.Key)] = written{entry{kv.ModRevision, kv.Value}, resp.Header.Revision}
		}
	}
}

// remember keeps what was written until base knows it.
func (b *batcher) remember(v *view, rev int64) {
	seen := b.seen()
	for k, w := range b.recent {
		if w.at <= seen {
			delete(b.recent, k)
		}
	}
	for k, value := range v.writes {
		e := entry{}
		if value != nil {
			e = entry{rev, value}
		}
		b.recent[k] = written{e, rev}
	}
}

// answer tells the callers. A request that was refused was so by what the transaction has compared.
func (b *batcher) answer(batch []*request, res result) {
	for _, r := range batch {
		mine := res
		if r.err != nil && res.err == nil {
			mine.err = r.err
		}
		var c *Conflict
		if errors.As(mine.err, &c) && c.Current == pending {
			c.Current = res.rev // it was changed by the same transaction
		}
		r.done <- mine
	}
}

// do has a request carried out and waits for it.
func (s *Store) do(ctx context.Context, eval func(v *view) error) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	r := &request{eval: eval, done: make(chan result, 1)}
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
		res = <-r.done // it is being written: that takes a bounded time
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
		size += len(c.Doc)
	}
	if size > maxBytes {
		return 0, fmt.Errorf("store: the transaction has %d bytes, at most %d are allowed", size, maxBytes)
	}
	ids := make([]string, len(changes))
	for i, c := range changes {
		if ids[i] = c.ID; c.ID == "" {
			ids[i] = newID()
		}
	}
	return s.do(ctx, func(v *view) error {
		for i := range changes {
			if err := s.change(v, &changes[i], ids[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// change makes one change in a view.
func (s *Store) change(v *view, c *Change, id string) error {
	key := s.keys.object(c.Key)
	now := v.get(key)
	version := now.rev
	if !now.exists() && version == pending {
		version = New // deleted by the same transaction
	}
	if c.IfVersion != Any && c.IfVersion != version {
		return &Conflict{Key: c.Key, Asked: c.IfVersion, Current: version}
	}
	switch {
	case c.Delete:
		v.del(key)
	case now.exists():
		v.put(key, encode(headOf(now.value), c.Doc))
	default:
		v.put(key, encode(newHead(id), c.Doc))
	}
	return nil
}
