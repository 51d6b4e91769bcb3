package cli

import (
	"context"
	"errors"
	"time"

	"heddle/internal/api"
)

// redialEvery is how often a follower asks whether an agent that ended is back.
const redialEvery = time.Second

// FollowAgents calls f for the present agent and for each that replaces it, until ctx ends or f fails. Once an agent
// has answered, an absent agent is no failure. f calls heard when the agent sends something, and returns nil when the
// stream has ended; then ended is called.
func FollowAgents(ctx context.Context, ended func(), f func(heard func()) error) error {
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
