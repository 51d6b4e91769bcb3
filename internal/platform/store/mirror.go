package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// page is how many objects are read at once.
const page = 1000

// mirror keeps the memory at what etcd holds: first all of it, then its changes by one watch.
type mirror struct {
	s     *Store
	stale *staleness
	// retry is how long to wait after a failure.
	retry time.Duration
	// of is the cluster of etcd that the memory is of.
	of atomic.Uint64
	// broken ends the watch.
	broken chan error
}

func newMirror(s *Store) *mirror {
	m := &mirror{s: s, stale: &s.stale, retry: 200 * time.Millisecond, broken: make(chan error, 1)}
	if s.opts.Fast {
		m.retry = 5 * time.Millisecond
	}
	return m
}

// load reads all objects as of one revision, in pages.
func (r *mirror) load(ctx context.Context) error {
	s := r.s
	from, end := s.keys.prefix+objectsBelow, clientv3.GetPrefixRangeEnd(s.keys.prefix+objectsBelow)
	var rev int64
	var objects []*Object
	for {
		opts := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(page), clientv3.WithRev(rev)}
		resp, err := s.client.Get(ctx, from, opts...)
		if err != nil {
			return fmt.Errorf("reading the state: %w", err)
		}
		if rev == 0 {
			rev = resp.Header.Revision
			r.of.Store(resp.Header.ClusterId)
		}
		for _, kv := range resp.Kvs {
			if o := r.object(kv); o != nil {
				objects = append(objects, o)
			}
		}
		if !resp.More {
			break
		}
		from = string(resp.Kvs[len(resp.Kvs)-1].Key) + "\x00"
	}
	s.mem.reset(rev, objects)
	return nil
}

// object reads a value; what is none is named in the log and left alone.
func (r *mirror) object(kv *mvccpb.KeyValue) *Object {
	key, ok := r.s.keys.parse(string(kv.Key))
	if !ok {
		return nil
	}
	o, err := decode(key, kv.Value, kv.ModRevision)
	if err != nil {
		r.s.log.Warn("a value in etcd is left out", "key", string(kv.Key), "err", err)
		return nil
	}
	return o
}

// run follows etcd until the context ends.
func (r *mirror) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		r.s.log.Debug("watching the state begins anew", "err", err)
		r.stale.set(err)
		pause(ctx, r.retry)
	}
}

// errReplaced says that etcd holds another state than the one that the memory is of: an older one was restored.
var errReplaced = errors.New("etcd's state was replaced")

// follow reads what is missing and watches until that fails.
func (r *mirror) follow(ctx context.Context) error {
	err := r.watch(ctx)
	replaced := errors.Is(err, errReplaced)
	if !replaced && !errors.Is(err, rpctypes.ErrCompacted) {
		return err
	}
	r.s.log.Info("reading the whole state again", "why", err)
	if replaced {
		// The probe may have meant what was read again since.
		if err := r.compare(ctx); !errors.Is(err, errReplaced) {
			return err
		}
		if err := r.s.replaced(ctx); err != nil {
			return err
		}
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	return r.watch(ctx)
}

// compare asks etcd what only a cluster with a quorum can answer, and whether that is the one that the memory is of.
// The client resumes a watch by itself when etcd comes back, and never reports that its state went back.
func (r *mirror) compare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.s.opts.Timeout)
	defer cancel()
	rev, of := r.s.mem.revision(), r.of.Load()
	head, err := r.s.client.Get(ctx, r.s.keys.meta("cluster"))
	switch {
	case err != nil:
		return err
	case head.Header.Revision < rev || head.Header.ClusterId != of:
		return errReplaced
	}
	return nil
}

func (r *mirror) watch(ctx context.Context) error {
	s := r.s
	ctx, stop := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer stop()
	if err := r.compare(ctx); err != nil {
		return err
	}
	r.stale.set(nil)
	answers := s.client.Watch(ctx, s.keys.prefix, clientv3.WithPrefix(), clientv3.WithProgressNotify(),
		clientv3.WithRev(s.mem.revision()+1))
	for {
		select {
		case err := <-r.broken:
			return err
		case resp, ok := <-answers:
			if !ok {
				return errors.New("the watch ended")
			}
			if err := resp.Err(); err != nil {
				return err
			}
			r.take(resp)
		}
	}
}

// probe compares regularly, and says whether reads are current.
func (r *mirror) probe(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.s.died():
			r.stale.set(errStopped)
			return
		case <-tick.C:
		}
		err := r.compare(ctx)
		if ctx.Err() != nil {
			return
		}
		if r.stale.set(err); errors.Is(err, errReplaced) {
			select {
			case r.broken <- err:
			default: // it is known already
			}
		}
	}
}

// take applies an answer of the watch, revision by revision. etcd never divides a revision between two answers.
func (r *mirror) take(resp clientv3.WatchResponse) {
	var batch []Event
	var at int64
	for _, e := range resp.Events {
		if e.Kv.ModRevision != at && at != 0 {
			r.s.mem.apply(at, batch)
			batch = nil
		}
		at = e.Kv.ModRevision
		key, ok := r.s.keys.parse(string(e.Kv.Key))
		switch {
		case !ok:
			r.s.identified([]*mvccpb.KeyValue{e.Kv})
		case e.Type == clientv3.EventTypeDelete:
			batch = append(batch, Event{Key: key})
		default:
			if o := r.object(e.Kv); o != nil {
				batch = append(batch, Event{Key: key, Object: o})
			}
		}
	}
	if at != 0 {
		r.s.mem.apply(at, batch)
	} else if resp.IsProgressNotify() {
		r.s.mem.apply(resp.Header.Revision, nil)
	}
}
