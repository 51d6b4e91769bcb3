package definition

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Past is the definition's history in the store.
type Past interface {
	// These are the methods of store.Past.
	Newest(ctx context.Context, below int64, limit int) ([]store.Record, error)
	Oldest(ctx context.Context, limit int) ([]store.Record, error)
	On(ctx context.Context, base int64) (*store.Record, error)
	Keep(ctx context.Context, base int64, id string, value []byte) (pieces int, err error)
	Kept(ctx context.Context, base int64, id string, pieces int) ([]byte, error)
	Remove(ctx context.Context, below int64) error
}

// Recorder records changes of the definition.
type Recorder struct {
	Past Past
	Keep history.Keep
	Log  *slog.Logger
}

// mostRecord is how large a record in the transaction of its change is, in bytes: the store's bound is that of both.
const mostRecord = 192 << 10

// Record is the change of the store that records a change of the definition, in the same transaction. have is the
// definition before.
func (r Recorder) Record(ctx context.Context, e history.Entry, have *slice.Set, c slice.Change) (list []store.Change,
	kept history.Entry, err error) {
	if r.Keep.Changes <= 0 {
		return nil, e, nil
	}
	newest, err := r.newest(ctx)
	if err != nil {
		return nil, e, err
	}
	e = e.Next(newest)
	body := history.Body{Put: ofDefinition(c.Put), Removed: slices.DeleteFunc(slices.Clone(c.Removed),
		func(k slice.Key) bool { return !slices.Contains(inventory.Kinds(), k.Kind) })}
	if e.Since == 0 {
		body.Whole = slices.Collect(have.All())
	}
	packed, err := history.Pack(body)
	if err != nil {
		return nil, e, err
	}
	if len(packed) > mostRecord {
		e.ID = store.NewID()
		if e.Pieces, err = r.Past.Keep(ctx, e.Base, e.ID, packed); err != nil {
			return nil, e, err
		}
		packed = nil
	}
	value, err := history.Encode(e, packed)
	return []store.Change{store.NewRecord(e.Base, value)}, e, err
}

// ofDefinition are the objects of a definition: with a change of it, others may be written.
func ofDefinition(list []slice.Object) []slice.Object {
	return slices.DeleteFunc(slices.Clone(list), func(o slice.Object) bool {
		return !slices.Contains(inventory.Kinds(), o.Kind)
	})
}

// newest is the newest entry, nil for none. A record that is damaged counts as a gap: the next one is whole.
func (r Recorder) newest(ctx context.Context) (*history.Entry, error) {
	list, err := r.Past.Newest(ctx, 0, 1)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	e, _, err := history.Decode(list[0].Base, list[0].Revision, list[0].Value)
	if err != nil {
		r.Log.Error("the newest record of the definition's history can't be read; the history goes on with a gap",
			"revision", list[0].Revision, "err", err)
		return &history.Entry{Revision: -1}, nil
	}
	return &e, nil
}

// Prune removes records that have had their time. It looks when a record with a whole definition was written: only
// before one of these may the history begin.
func (r Recorder) Prune(ctx context.Context, newest history.Entry) {
	if r.Keep.Changes <= 0 || newest.Since != 0 {
		return
	}
	for {
		list, err := r.Past.Oldest(ctx, 2*history.Stretch)
		var entries []history.Entry
		for _, o := range list {
			e, _, damaged := history.Decode(o.Base, o.Revision, o.Value)
			err = errors.Join(err, damaged)
			entries = append(entries, e)
		}
		below := r.Keep.Outdated(entries, newest.Number, time.Now())
		if err == nil && below > 0 {
			err = r.Past.Remove(ctx, below)
		}
		if err != nil {
			r.Log.Warn("old records of the definition's history are not removed", "err", err)
		}
		if err != nil || below == 0 {
			return
		}
	}
}

// Kind is the kind of the one object that is written with every change of the definition: its version is the
// definition's revision.
const Kind store.Kind = "definition"

// Key is the key of that object.
func Key() store.Key { return store.Key{Kind: Kind, Name: "current"} }
