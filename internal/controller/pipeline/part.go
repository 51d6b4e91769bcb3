package pipeline

import (
	"context"

	"heddle/internal/platform/store"
)

// Part is what one capability of a controller does in a change of the definition: it has some of the hooks below. It is
// made for one change, and may keep what it finds from one hook to the next.
type Part any

// Parser reads what a request asks for besides the definition, and refuses what cannot be read.
type Parser interface {
	Parse(ctx context.Context, p *Plan) error
}

// Opener clears away what an earlier change has left, before the definition is read.
type Opener interface {
	Open(ctx context.Context, p *Plan) error
}

// Judge refuses a change by the definition before and the one wanted.
type Judge interface {
	Judge(ctx context.Context, p *Plan) error
}

// Weigher finds what a change means for hosts, and refuses one that cannot be made there.
type Weigher interface {
	Weigh(ctx context.Context, p *Plan) error
}

// Foreteller completes the answer to a dry run.
type Foreteller interface {
	Foretell(ctx context.Context, p *Plan) error
}

// Satisfied does what is left to do where the definition is already as it is wanted.
type Satisfied interface {
	Satisfied(ctx context.Context, p *Plan) error
}

// Preparer has done what must be there before the change counts. Where one fails, nothing has changed.
type Preparer interface {
	Prepare(ctx context.Context, p *Plan) error
}

// Contributor adds changes of the store to the transaction by which the change counts.
type Contributor interface {
	Changes(p *Plan) ([]store.Change, error)
}

// Teller completes the answer once the change counts.
type Teller interface {
	Tell(ctx context.Context, p *Plan)
}

// Settler does what a change that counts has left to do. It goes on where the caller leaves.
type Settler interface {
	Settle(ctx context.Context, p *Plan)
}

// Closer forgets what a part had others know of a change under way. It is called whatever became of the change.
type Closer interface {
	Close()
}

// all calls a hook that cannot fail of all parts that have it, in their order.
func all[Hook any](parts []Part, call func(Hook)) {
	for _, part := range parts {
		if hook, has := part.(Hook); has {
			call(hook)
		}
	}
}

// each calls a hook of all parts that have it, in their order, until one fails.
func each[Hook any](parts []Part, call func(Hook) error) error {
	for _, part := range parts {
		if hook, has := part.(Hook); has {
			if err := call(hook); err != nil {
				return err
			}
		}
	}
	return nil
}
