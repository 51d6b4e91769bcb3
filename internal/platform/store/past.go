package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// Newest reads up to limit records, the newest first: those with a base below that one; 0 for all. etcd itself reads
// all keys of a range that it sorts downwards, however few are asked for.
// So the range is read in windows, from its end on.
func (p Past) Newest(ctx context.Context, below int64, limit int) (list []Record, err error) {
	oldest, newest, err := p.ends(ctx)
	if err != nil || oldest == nil {
		return nil, err
	}
	if below <= 0 || below > newest {
		below = newest + 1
	}
	for width := int64(limit); len(list) < limit && below > oldest.Base; {
		from, need := max(oldest.Base, below-width), limit-len(list)
		n, err := p.count(ctx, from, below)
		if err != nil {
			return nil, err
		}
		if n > mostRead*need && width > int64(need) {
			width = max(int64(need), width/2) // of which there are no more than needed: a revision has one record
			continue
		}
		part, err := p.read(ctx, p.s.keys.past(from), clientv3.WithRange(p.s.keys.past(below)))
		if err != nil {
			return nil, err
		}
		slices.Reverse(part)
		list = append(list, part[:min(need, len(part))]...)
		below, width = from, width*wider
	}
	return list, nil
}

const (
	// mostRead is how many times the records that are needed are read at most at a time, and wider how many times wider
	// the next window is.
	mostRead, wider = 4, 4
)

// ends are the oldest record, nil for none, and the revision of the store, which is that of the newest record or later.
func (p Past) ends(ctx context.Context) (oldest *Record, newest int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, p.s.opts.Timeout)
	defer cancel()
	resp, err := p.s.client.Get(ctx, p.s.keys.prefix+pastBelow, clientv3.WithPrefix(), clientv3.WithLimit(1),
		clientv3.WithKeysOnly())
	if err != nil {
		return nil, 0, wrap(err)
	}
	list, err := p.recordsOf(resp)
	if err != nil || len(list) == 0 {
		return nil, 0, err
	}
	return &list[0], resp.Header.GetRevision(), nil
}

// count is how many records there are with a base from the first on, and below the second.
func (p Past) count(ctx context.Context, from, below int64) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, p.s.opts.Timeout)
	defer cancel()
	resp, err := p.s.client.Get(ctx, p.s.keys.past(from), clientv3.WithRange(p.s.keys.past(below)),
		clientv3.WithCountOnly())
	if err != nil {
		return 0, wrap(err)
	}
	return int(resp.Count), nil
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
	return p.recordsOf(resp)
}

// recordsOf are the records of an answer.
func (p Past) recordsOf(resp *clientv3.GetResponse) (list []Record, err error) {
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
