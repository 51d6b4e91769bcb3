package store

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	// mine is set when the batcher has it: it may have waited for a second transaction.
	mine bool
	err  error
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
	catchUp func(ctx context.Context, revision int64)
	collect time.Duration
	timeout time.Duration
	queue   chan *request
	// waiting were put off by the transaction before.
	waiting []*request
	// limit is how many requests one transaction has. It is halved when somebody else was faster, so that of two
	// controllers that want the same keys the slower one gets its turn, and doubled when a transaction succeeds.
	limit int
	// recent is what own transactions wrote that base doesn't know yet, by key. others is what was seen last of keys
	// that base never knows.
	recent, others map[string]written
	held           func(key string) bool // whether base knows a key
	past           string                // what the keys of records begin with: nobody asks for them
	// resets counts how often base was replaced, of is the count that the caches are of: after a restore revisions that
	// were seen say nothing.
	resets func() int64
	of     int64
	// refused makes an error of etcd one of the store.
	refused func(error) error
	// wrote is told how many bytes of values a transaction has written.
	wrote func(bytes int)
}

// written is a key's entry as of a revision.
type written struct {
	entry
	at int64
}

func newBatcher(s *Store) *batcher {
	catchUp := func(ctx context.Context, revision int64) {
		if err := s.mem.wait(ctx, revision); err != nil {
			s.log.Debug("the memory is behind while a transaction is made again", "revision", revision, "err", err)
		}
	}
	return &batcher{client: s.client, base: s.known, seen: s.mem.revision, catchUp: catchUp, resets: s.mem.resets,
		collect: s.opts.Collect, timeout: s.opts.Timeout, queue: make(chan *request, MaxChanges),
		recent: map[string]written{}, others: map[string]written{}, limit: MaxChanges, refused: s.keeper.refused,
		wrote: s.Limits.wrote,
		held:  func(key string) bool { _, ok := s.keys.parse(key); return ok }, past: s.keys.prefix + pastBelow}
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
		if r.mine || r.taken.CompareAndSwap(false, true) {
			r.mine = true
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
	if batch = take(batch); len(batch) == 0 {
		return
	}
	for {
		v, later := b.evaluate(batch, known)
		batch, b.waiting = batch[:len(batch)-len(later)], append(later, b.waiting...)
		compare, write, read := v.txn()
		resp, err := b.client.Txn(ctx).If(compare...).Then(write...).Else(read...).Commit()
		if err != nil {
			b.answer(batch, result{err: b.refused(err)})
			return
		}
		if resp.Succeeded {
			b.limit = min(2*b.limit, MaxChanges)
			b.wrote(v.bytes)
			b.remember(v, resp.Header.Revision)
			b.answer(batch, result{rev: resp.Header.Revision})
			return
		}
		b.limit = max(len(batch)/2, 1)
		b.learn(known, v, resp)
		if len(v.still) > 0 { // what was written under those keys is known from the memory alone
			b.catchUp(ctx, resp.Header.Revision)
		}
	}
}

// evaluate runs requests on a fresh view, as many as fit into one transaction; the others have to wait for the next.
func (b *batcher) evaluate(batch []*request, known map[string]written) (v *view, later []*request) {
	if now := b.resets(); now != b.of {
		b.of = now
		clear(b.recent)
		clear(b.others)
		clear(known)
	}
	v = newView(func(key string) entry { return b.lookup(key, known) })
	for i, r := range batch {
		if i >= b.limit {
			return v, slices.Clone(batch[i:])
		}
		child := v.child()
		err := r.eval(child)
		if i > 0 && !v.fits(child) {
			return v, slices.Clone(batch[i:])
		}
		r.err = err
		v.merge(child, err != nil)
	}
	return v, nil
}

// lookup is the newest that is known of a key.
func (b *batcher) lookup(key string, known map[string]written) entry {
	e, at := b.base(key)
	for _, newer := range []map[string]written{b.recent, b.others} {
		if w, ok := newer[key]; ok && w.at > at {
			e, at = w.entry, w.at
		}
	}
	if w, ok := known[key]; ok && w.at > at {
		e = w.entry
	}
	return e
}

// learn takes what a failed transaction has read.
func (b *batcher) learn(known map[string]written, v *view, resp *clientv3.TxnResponse) {
	for k := range v.reads {
		known[k] = written{at: resp.Header.Revision}
	}
	for _, r := range resp.Responses {
		for _, kv := range r.GetResponseRange().GetKvs() {
			known[string(kv.Key)] = written{entry{kv.ModRevision, kv.Value}, resp.Header.Revision}
		}
	}
	for k := range v.reads {
		b.note(k, known[k])
	}
}

// maxOthers is how many keys that base doesn't know are remembered.
const maxOthers = 1 << 14

// note remembers a key's entry.
func (b *batcher) note(key string, w written) {
	if b.held(key) {
		return
	}
	if len(b.others) >= maxOthers {
		clear(b.others)
	}
	b.others[key] = w
}

// remember keeps the written values until base has their revision or a later one.
func (b *batcher) remember(v *view, rev int64) {
	seen := b.seen()
	for k, w := range b.recent {
		if w.at <= seen {
			delete(b.recent, k)
		}
	}
	for k, value := range v.writes {
		if strings.HasPrefix(k, b.past) {
			continue
		}
		e := entry{}
		if value != nil {
			e = entry{rev, value}
		}
		if b.note(k, written{e, rev}); b.held(k) {
			b.recent[k] = written{e, rev}
		}
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
