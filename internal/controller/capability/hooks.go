package capability

import (
	"context"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/fanout"
	"heddle/internal/controller/pipeline"
	"heddle/internal/platform/store"
)

// The hooks of a part, beside those of package part for the conversations with hosts.
type (
	// Server answers calls of people and tools, each held against the capability's rules.
	Server interface{ Register(*connect.Server) }
	// Runner does what a part does by itself, until ctx ends.
	Runner interface{ Run(ctx context.Context) }
	// Taker takes in what became of the objects of the capability's kinds in one batch of the store; anew: all objects
	// are there, and others that the part knows are gone. It is called while the controller holds the lock of its
	// hosts. It returns the ids of the hosts whose parts of the definition are to be made anew.
	Taker interface {
		Take(events []store.Event, anew bool) map[string]bool
	}
	// Changer takes part in each change of the definition: it judges and weighs, adds to a dry run, and has done what
	// must be in the store before the change counts, or with it.
	Changer interface{ Change(World) Change }
)

// World is what a part of one change may ask for in it.
type World struct {
	// Reported is what hosts report, wherever they are connected; from the stage on in which a change is weighed.
	Reported func() *fanout.Answers
}

// Change is what a part does in one change of the definition, each half a part of package pipeline, nil for nothing.
type Change struct {
	// Judge is called before what the change means for hosts is found, Work behind the record of the change.
	Judge, Work pipeline.Part
}
