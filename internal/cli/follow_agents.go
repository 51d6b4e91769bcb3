package cli

import (
	"context"
	"errors"
	"time"

	"heddle/internal/api"
)

// redialEvery is how often a follower asks whether an agent that ended is back.
const redialEvery = time.Second

// followAgents calls f for the agent there is and for each that comes after it, until ctx ends or f fails; an agent
// that is away is no failure once one was heard. f calls heard for what the agent says, and returns nil when that has
// ended; ended is called then.
func followAgents(ctx context.Context, ended func(), f func(heard func()) error) error {
	followed := false
	for {
		err := f(func() { followed = true })
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && (!followed || !errors.Is(err, api.ErrNoAgent) && !errors.Is(err, api.ErrEnded)):
			return err
		case err == nil:
			followed = true
			ended()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(redialEvery):
		}
	}
}
