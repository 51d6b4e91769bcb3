package staged

import (
	"context"
	"fmt"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/pipeline"
	"heddle/internal/controller/rollout/kept"
	"heddle/internal/slice"
)

// TakenBack is the source of the present definition without the change of an open rollout.
type TakenBack struct {
	Record  kept.Record
	Rollout string
}

// Parse implements pipeline.Source.
func (TakenBack) Parse(context.Context) error { return nil }

// Wanted implements pipeline.Source.
func (b TakenBack) Wanted(have *slice.Set) (pipeline.Wanted, error) {
	k, ok := b.Record.Find(b.Rollout)
	if !ok || !k.Open() {
		return pipeline.Wanted{}, connect.NewError(connect.CodeAborted, fmt.Sprintf("rollout %s is open no more",
			b.Rollout))
	}
	undo, ids, err := b.Record.Undo(k)
	if err != nil {
		return pipeline.Wanted{}, err
	}
	next := have.Clone()
	next.Apply(undo)
	return pipeline.Wanted{Next: next, IDs: ids}, nil
}
