package past

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/definition"
	"heddle/internal/controller/history"
	"heddle/internal/controller/inventory"
	"heddle/internal/controller/visibility"
	"heddle/internal/platform/access"
	"heddle/internal/platform/access/roles"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
	"heddle/internal/spec"
)

// Reader answers about earlier definitions.
type Reader struct {
	// Past is the history, Log says what of it can't be read.
	Past definition.Past
	Log  *slog.Logger
	// Kept are the definitions that were read last. Turns has one question answered at a time, as each may take in a
	// whole definition; an admin's do not wait for others.
	Kept  *Kept
	Turns *access.Turns
	// Sync returns when all is read that was written before, Now is the definition that counts and its revision.
	Sync func(context.Context) error
	Now  func() (*slice.Set, int64)
}

// How many changes ListChanges lists: SomeChanges where nobody says.
const (
	SomeChanges = 20
	mostChanges = 1000
	// mostLooked is at how many a call with a filter looks at most.
	mostLooked = 20 * mostChanges
)

// ListChanges lists changes of the definition, the newest first.
func (r Reader) ListChanges(ctx context.Context, q *controllerv1.ListChangesRequest) (
	*controllerv1.ListChangesResponse, error) {
	leave, err := r.begins(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer leave()
	limit := int(q.GetLimit())
	if limit <= 0 {
		limit = SomeChanges
	}
	limit = min(limit, mostChanges)
	filter := history.Filter{Who: q.GetWho(), Text: q.GetText()}
	if q.GetSince() != nil {
		filter.Since = q.GetSince().AsTime()
	}
	page, most := limit, limit
	if !filter.All() {
		page, most = mostChanges, mostLooked
	}
	out := &controllerv1.ListChangesResponse{More: q.GetBefore()}
	for looked := 0; looked < most; looked += page {
		list, err := r.Past.Newest(ctx, out.More, page+1)
		if err != nil {
			return nil, rpcerrors.OfStore(err)
		}
		if done, err := sift(out, list, page, limit, filter, access.GrantedTo(ctx)); done || err != nil {
			return out, err
		}
	}
	return out, nil
}

// sift adds the changes of a page that pass the filter and that the caller sees. done: there are enough, or no more.
func sift(out *controllerv1.ListChangesResponse, list []store.Record, page, limit int, filter history.Filter,
	sight *roles.Access) (done bool, err error) {
	for i, rec := range list[:min(page, len(list))] {
		if filter.Skips(rec.Value) {
			out.More = rec.Base
			continue
		}
		e, _, err := history.Decode(rec.Base, rec.Revision, rec.Value)
		if err != nil {
			return false, err
		}
		if filter.Before(e) {
			out.More = 0
			return true, nil
		}
		out.More = rec.Base
		if c := changeOf(e); seenChange(sight, c) && filter.Passes(e, c.GetObjects()) {
			out.Changes = append(out.Changes, c)
		}
		if len(out.Changes) == limit && i+1 < len(list) {
			return true, nil
		}
	}
	if len(list) <= page {
		out.More = 0
	}
	return len(list) <= page, nil
}

// changeOf is an entry as it is told.
func changeOf(e history.Entry) *controllerv1.DefinitionChange {
	return &controllerv1.DefinitionChange{Revision: e.Revision, Base: e.Base, Number: e.Number,
		At: timestamppb.New(e.At), Who: e.Who, File: e.File, Message: e.Message, Restores: e.Restores,
		Objects: e.Objects, Left: int32(min(e.Left, 1<<30)), Gap: e.Gap, How: e.How}
}

// CompareDefinitions says what is different between two definitions.
func (r Reader) CompareDefinitions(ctx context.Context, q *controllerv1.CompareDefinitionsRequest) (
	*controllerv1.CompareDefinitionsResponse, error) {
	leave, err := r.begins(ctx, q.GetFrom(), q.GetTo())
	if err != nil {
		return nil, err
	}
	defer leave()
	from, _, err := r.at(ctx, q.GetFrom())
	if err != nil {
		return nil, err
	}
	to, revision, err := r.at(ctx, q.GetTo())
	if err != nil {
		return nil, err
	}
	from, to = differing(from, to)
	sight := access.GrantedTo(ctx)
	from, to = visibility.Visible(sight, from), visibility.Visible(sight, to)
	return &controllerv1.CompareDefinitionsResponse{From: q.GetFrom(), To: revision,
		Objects: definition.ObjectChanges(from, slice.Between(from, to))}, nil
}

// differing is what of two definitions is not the same in both: who sees what is only asked about that.
func differing(from, to *slice.Set) (was, is *slice.Set) {
	was, is = &slice.Set{}, &slice.Set{}
	if from.Hash() == to.Hash() {
		return was, is
	}
	c := slice.Between(from, to)
	for _, o := range c.Put {
		is.Put(o)
		if before, had := from.Get(o.Key); had {
			was.Put(before)
		}
	}
	for _, k := range c.Removed {
		before, _ := from.Get(k)
		was.Put(before)
	}
	return was, is
}

// GetPastDefinition reads an earlier definition.
func (r Reader) GetPastDefinition(ctx context.Context, q *controllerv1.GetPastDefinitionRequest) (
	*controllerv1.GetPastDefinitionResponse, error) {
	leave, err := r.begins(ctx, q.GetRevision())
	if err != nil {
		return nil, err
	}
	defer leave()
	set, revision, err := r.at(ctx, q.GetRevision())
	if err != nil {
		return nil, err
	}
	set = visibility.Visible(access.GrantedTo(ctx), set)
	d, err := inventory.DefinitionOf(set)
	if err != nil {
		return nil, err
	}
	text, err := spec.FormatDefinition(d)
	return &controllerv1.GetPastDefinitionResponse{Revision: revision,
		Content: definition.NotShown(set) + string(text)}, err
}

// At is the definition of a revision, which must not be changed; 0 for the one that is in force.
func (r Reader) At(ctx context.Context, revision int64) (*slice.Set, int64, error) {
	leave, err := r.begins(ctx, revision)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	return r.at(ctx, revision)
}

// begins waits for the caller's turn. That all is read which was written before is awaited first, where it matters:
// while etcd does not answer, nobody waits for the turn of who waits for that.
func (r Reader) begins(ctx context.Context, revisions ...int64) (leave func(), err error) {
	read := func(n int64) bool { return n == 0 || r.Kept.Get(n) == nil }
	if slices.ContainsFunc(revisions, read) {
		if err := r.Sync(ctx); err != nil {
			return nil, rpcerrors.OfStore(err)
		}
	}
	return r.Turns.Take(ctx)
}

// at is At for who has a turn.
func (r Reader) at(ctx context.Context, revision int64) (*slice.Set, int64, error) {
	if set := r.Kept.Get(revision); set != nil && revision != 0 {
		return set, revision, nil
	}
	now, current := r.Now()
	if revision == 0 || revision == current {
		return now, current, nil
	}
	set, err := r.read(ctx, revision)
	if err != nil {
		return nil, 0, err
	}
	return r.Kept.Keep(revision, set, now), revision, nil
}

// read makes the definition of a revision of its records.
func (r Reader) read(ctx context.Context, revision int64) (*slice.Set, error) {
	// A definition that was changed without a record is whole in the record of the change that came after it.
	next, err := r.Past.On(ctx, revision)
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	if next != nil {
		s, err := r.step(ctx, *next)
		if err != nil {
			return nil, err
		}
		if s.Since == 0 {
			return s.Before(), nil
		}
	}
	stretch, err := r.Stretch(ctx, revision)
	if err != nil {
		return nil, err
	}
	return history.After(stretch)
}

// Stretch are the changes from the last whole definition to that revision.
func (r Reader) Stretch(ctx context.Context, revision int64) (steps []history.Step, err error) {
	list, err := r.Past.Newest(ctx, revision, history.Stretch)
	if err != nil {
		return nil, rpcerrors.OfStore(err)
	}
	if len(list) == 0 || list[0].Revision != revision {
		return nil, connect.NewError(connect.CodeNotFound, fmt.Sprintf("revision %d is none of the definition's, or "+
			"its time in the history is over: heddle definition history lists those that are kept", revision))
	}
	for _, rec := range list {
		s, err := r.step(ctx, rec)
		if err != nil {
			return nil, err
		}
		if steps = append(steps, s); s.Since == 0 {
			break
		}
	}
	slices.Reverse(steps)
	return steps, nil
}

// step is a record with its body.
func (r Reader) step(ctx context.Context, rec store.Record) (s history.Step, err error) {
	var packed []byte
	if s.Entry, packed, err = history.Decode(rec.Base, rec.Revision, rec.Value); err != nil {
		return s, err
	}
	if s.Pieces > 0 {
		if packed, err = r.Past.Kept(ctx, s.Base, s.ID, s.Pieces); errors.Is(err, store.ErrPieceMissing) {
			return s, fmt.Errorf("revision %d: %w", s.Revision, err)
		} else if err != nil {
			return s, rpcerrors.OfStore(err)
		}
	}
	s.Body, err = history.Unpack(packed)
	return s, err
}
