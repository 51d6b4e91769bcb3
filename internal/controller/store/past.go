package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Record is one of the history, as PastOf keeps it: what a change made of the definition.
type Record struct {
	// Base is the revision that the change was made on, Revision the one that it made.
	Base, Revision int64
	Value          []byte
}

// pieceBytes is how large a piece of a record is at most.
const pieceBytes = 512 << 10

// base is the revision in the name of a record.
func (c *Change) base() int64 {
	n, _ := strconv.ParseInt(c.Name, 10, 64) // checkRecord refuses others
	return n
}

func (c *Change) checkRecord() error {
	n, err := strconv.ParseInt(c.Name, 10, 64)
	switch {
	case err != nil || n < 0:
		return fmt.Errorf("store: %q is no revision that a record can be of", c.Name)
	case len(c.Record) == 0 || c.Delete || len(c.Doc) > 0:
		return fmt.Errorf("store: a %s has a record, and nothing else", c.Key)
	}
	return nil
}

// NewRecord is the change that adds a record of a change that is made on the revision base.
func NewRecord(base int64, value []byte) Change {
	return Change{Key: Key{Kind: KindPast, Name: strconv.FormatInt(base, 10)}, Record: value, IfVersion: Any}
}

// Past reads and prunes the history: of that nothing is held in memory.
type Past struct{ s *Store }

// PastOf is the history in a store.
func PastOf(s *Store) Past { return Past{s} }

// Newest reads up to limit records, the newest first: those with a base below that one; 0 for all.
func (p Past) Newest(ctx context.Context, below int64, limit int) ([]Record, error) {
	from, end := p.s.keys.prefix+pastBelow, p.s.keys.past(below)
	if below <= 0 {
		end = clientv3.GetPrefixRangeEnd(from)
	}
	return p.read(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(int64(limit)),
		clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend))
}

// Oldest reads up to limit records, the oldest first.
func (p Past) Oldest(ctx context.Context, limit int) ([]Record, error) {
	return p.read(ctx, p.s.keys.prefix+pastBelow, clientv3.WithPrefix(), clientv3.WithLimit(int64(limit)))
}

// On reads the record of the change that was made on a revision, nil for none.
func (p Past) On(ctx context.Context, base int64) (*Record, error) {
	list, err := p.read(ctx, p.s.keys.past(base))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return &list[0], nil
}

func (p Past) read(ctx context.Context, key string, opts ...clientv3.OpOption) (list []Record, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.s.opts.Timeout)
	defer cancel()
	resp, err := p.s.client.Get(ctx, key, opts...)
	if err != nil {
		return nil, wrap(err)
	}
	for _, kv := range resp.Kvs {
		base, err := strconv.ParseInt(strings.TrimPrefix(string(kv.Key), p.s.keys.prefix+pastBelow), 16, 64)
		if err != nil {
			return nil, fmt.Errorf("store: %q is no key of the history", kv.Key)
		}
		list = append(list, Record{Base: base, Revision: kv.ModRevision, Value: kv.Value})
	}
	return list, nil
}

// Keep writes what is too large for the record of a change that is made on that revision, before the record, which
// names
// it by the id. pieces is how many it takes.
func (p Past) Keep(ctx context.Context, base int64, id string, value []byte) (pieces int, err error) {
	for ; len(value) > 0; pieces++ {
		n := min(len(value), pieceBytes)
		one, cancel := context.WithTimeout(ctx, p.s.opts.Timeout)
		_, err := p.s.client.Put(one, p.s.keys.piece(base, id, pieces), string(value[:n]))
		cancel()
		if err != nil {
			return 0, wrap(err)
		}
		value = value[n:]
	}
	return pieces, nil
}

// ErrPieceMissing says that a record names a piece that is not there.
var ErrPieceMissing = errors.New("store: a piece of a record of the history is missing")

// Kept reads what Keep wrote.
func (p Past) Kept(ctx context.Context, base int64, id string, pieces int) (value []byte, err error) {
	for n := range pieces {
		one, cancel := context.WithTimeout(ctx, p.s.opts.Timeout)
		resp, err := p.s.client.Get(one, p.s.keys.piece(base, id, n))
		cancel()
		switch {
		case err != nil:
			return nil, wrap(err)
		case len(resp.Kvs) == 0:
			return nil, ErrPieceMissing
		}
		value = append(value, resp.Kvs[0].Value...)
	}
	return value, nil
}

// Remove removes the records of changes that were made on revisions below that one, with what was kept for them, also
// for changes that were never made.
func (p Past) Remove(ctx context.Context, below int64) error {
	ctx, cancel := context.WithTimeout(ctx, p.s.opts.Timeout)
	defer cancel()
	k := p.s.keys
	_, err := p.s.client.Txn(ctx).Then(clientv3.OpDelete(k.past(0), clientv3.WithRange(k.past(below))),
		clientv3.OpDelete(k.piece(0, "", 0), clientv3.WithRange(k.prefix+pieceBelow+revisionKey(below)))).Commit()
	return wrap(err)
}
