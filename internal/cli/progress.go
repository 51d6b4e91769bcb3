package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/dataplane"
)

// attachTimeout bounds a command for which a great many devices may be attached, some 10 ms each.
const attachTimeout = 5 * time.Minute

// showEvery is how often a progress line is renewed.
const showEvery = 250 * time.Millisecond

// ClearLine erases the line the cursor is in (ECMA-48: carriage return, erase in line).
const ClearLine = "\r\x1b[K"

// askWithin calls the agent for a change. On a terminal it shows meanwhile how many devices still wait to be attached,
// or who is asked.
func askWithin[T any](d Deps, c *cobra.Command, t *Target, within time.Duration,
	f func(context.Context, api.Service) (T, error)) (T, error) {
	var zero T
	client, err := t.Client()
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), within)
	defer cancel()
	shown := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(shown)
		if d.Watched {
			d.showProgress(ctx, client, stop)
		}
	}()
	v, err := f(ctx, client)
	close(stop)
	<-shown
	return v, err
}

func (d Deps) showProgress(ctx context.Context, s api.Service, stop <-chan struct{}) {
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	wrote := false
	for {
		select {
		case <-stop:
			if wrote {
				fmt.Fprint(d.Stderr, ClearLine)
			}
			return
		case <-tick.C:
		}
		p, err := s.Progress(ctx)
		switch {
		case err != nil:
		case p.Attaching > 0:
			fmt.Fprintf(d.Stderr, "%sattaching devices: %d of %d", ClearLine, p.Of-p.Attaching, p.Of)
			wrote = true
		case p.Trial != nil && p.Trial.State == api.TrialAsking:
			fmt.Fprintf(d.Stderr, "%s%s", ClearLine, trialText(p.Trial))
			wrote = true
		}
	}
}

// Detaching shows how many devices "heddle down" still has to detach; done ends the line.
func (d Deps) Detaching() (progress func(left int), done func()) {
	if !d.Watched {
		return nil, func() {}
	}
	var next time.Time
	wrote := false
	progress = func(left int) {
		if now := time.Now(); now.After(next) {
			fmt.Fprintf(d.Stderr, "%sdetaching devices: %d left", ClearLine, left)
			next, wrote = now.Add(showEvery), true
		}
	}
	return progress, func() {
		if wrote {
			fmt.Fprint(d.Stderr, ClearLine)
		}
	}
}

// ReadAt returns the present time in the form of Apply.ReadAt, Block.ReadAt and Move.ReadAt; it is called when a
// command has its input.
func ReadAt() int64 {
	now, err := dataplane.Monotonic()
	if err != nil {
		return 0 // the agent then counts from the arrival of the request
	}
	return now
}

// printActive prints when a change was active.
func printActive(d Deps, out *api.Applied) error {
	if out.ActiveAt == nil {
		return nil
	}
	_, err := fmt.Fprintf(d.Stdout, "active after %.1f ms, for all ports at one instant\n", out.ActiveAfterSeconds*1e3)
	return err
}
