package pipeline

import (
	"context"
	"errors"
	"fmt"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/inventory"
	"heddle/internal/platform/rpcerrors"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// Definition is the definition in the store.
type Definition interface {
	// Sync returns when all is read that was written before.
	Sync(ctx context.Context) error
	// Fold makes one of the definition and of a change that counts and was written in parts.
	Fold(ctx context.Context) error
	// Read is the definition with its revision, and the versions of its objects.
	Read() (revision int64, have *slice.Set, versions map[slice.Key]int64)
	// Write writes a change, with what more makes in the transaction from which on it counts.
	Write(ctx context.Context, p *Plan, more func() ([]store.Change, error)) (revision int64, err error)
}

// run is one change on its way.
type run struct {
	definition Definition
	parts      []Part
}

// Make makes a change, or finds out what it would do. An error that is a conflict about what a part writes is the
// store's own: then nothing has changed, and the change may be made anew, with new parts.
func Make(ctx context.Context, d Definition, parts []Part, q *Request) (*controllerv1.ApplyDefinitionResponse, error) {
	r, p := run{d, parts}, &Plan{Request: q, Answer: &controllerv1.ApplyDefinitionResponse{}}
	defer all(parts, Closer.Close)
	for _, stage := range []func(context.Context, *Plan) error{r.parse, r.read, r.judge, r.weigh} {
		if err := stage(ctx, p); err != nil {
			return nil, err
		}
	}
	last := r.write
	switch {
	case q.GetDryRun():
		last = r.foretell
	case p.Change.Empty():
		last = r.satisfied
	}
	if err := last(ctx, p); err != nil {
		return nil, err
	}
	return p.Answer, nil
}

// parse reads what was sent.
func (r run) parse(ctx context.Context, p *Plan) error {
	if err := each(r.parts, func(h Parser) error { return h.Parse(ctx, p) }); err != nil {
		return err
	}
	return p.Source.Parse(ctx)
}

// read reads the definition that there is, and finds the one that is wanted in its place.
func (r run) read(ctx context.Context, p *Plan) error {
	err := r.definition.Sync(ctx)
	if err != nil && (!p.GetDryRun() || !errors.Is(err, store.ErrNoSpace)) { // at the quota nobody can write
		return rpcerrors.OfStore(err)
	}
	if err := r.definition.Fold(ctx); err != nil {
		return rpcerrors.OfStore(err)
	}
	if err := each(r.parts, func(h Opener) error { return h.Open(ctx, p) }); err != nil {
		return err
	}
	p.Base, p.Have, p.Versions = r.definition.Read()
	if p.Request.Base != nil {
		if err := p.Request.Base(p.Base); err != nil {
			return err
		}
	}
	want, err := p.Source.Wanted(p.Have)
	if err != nil {
		return err
	}
	p.Next, p.Answer.Kept, p.Answer.Revision = want.Next, want.Kept, p.Base
	if want.IDs != nil {
		p.IDs = want.IDs
	}
	return nil
}

// judge refuses a change that may not be made, or that this cluster does not know how to make.
func (r run) judge(ctx context.Context, p *Plan) (err error) {
	if err := each(r.parts, func(h Judge) error { return h.Judge(ctx, p) }); err != nil {
		return err
	}
	p.Change = slice.Between(p.Have, p.Next)
	p.Answer.Changes = lines(p.Have, p.Change)
	p.After, err = inventory.New(p.Next)
	return err
}

// weigh finds what a change means for hosts.
func (r run) weigh(ctx context.Context, p *Plan) error {
	return each(r.parts, func(h Weigher) error { return h.Weigh(ctx, p) })
}

// foretell answers a dry run.
func (r run) foretell(ctx context.Context, p *Plan) error {
	return each(r.parts, func(h Foreteller) error { return h.Foretell(ctx, p) })
}

// satisfied answers where the definition is already as it is wanted.
func (r run) satisfied(ctx context.Context, p *Plan) error {
	err := each(r.parts, func(h Satisfied) error { return h.Satisfied(ctx, p) })
	if err == nil {
		r.settle(ctx, p)
	}
	return err
}

// write has the parts prepare the change, makes it count, and tells what came of it.
func (r run) write(ctx context.Context, p *Plan) error {
	if err := each(r.parts, func(h Preparer) error { return h.Prepare(ctx, p) }); err != nil {
		return err
	}
	revision, err := r.definition.Write(ctx, p, func() (more []store.Change, err error) {
		err = each(r.parts, func(h Contributor) error {
			list, err := h.Changes(p)
			more = append(more, list...)
			return err
		})
		return more, err
	})
	if err != nil {
		return err
	}
	p.Answer.Revision = revision
	all(r.parts, func(h Teller) { h.Tell(ctx, p) })
	r.settle(context.WithoutCancel(ctx), p) // also where the caller leaves
	return nil
}

func (r run) settle(ctx context.Context, p *Plan) {
	all(r.parts, func(h Settler) { h.Settle(ctx, p) })
}

// lines say what a change does, a line each.
func lines(have *slice.Set, c slice.Change) (lines []string) {
	for _, o := range c.Put {
		word := "added"
		if _, ok := have.Get(o.Key); ok {
			word = "changed"
		}
		lines = append(lines, fmt.Sprintf("%s %s", o.Key, word))
	}
	for _, k := range c.Removed {
		lines = append(lines, fmt.Sprintf("%s removed", k))
	}
	return lines
}
