package cli

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"heddle/internal/api"
)

// A host that hangs is given up some time after the last answer of another one, and named; what others say in that time
// is waited for, also where all are slow.
func TestStragglers_AreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := &stragglers{patience: hostPatience}, time.Now()
		ask := func(host string, takes time.Duration) <-chan error {
			within, done := s.begin(t.Context(), host)
			answer := make(chan error, 1)
			go func() {
				select {
				case <-time.After(takes):
					answer <- done(nil)
				case <-within.Done():
					answer <- done(within.Err())
				}
			}()
			return answer
		}
		one, two := ask("one", hostPatience-time.Second), ask("two", 2*hostPatience-2*time.Second)
		hangs := ask("hangs", time.Hour)
		if err := errors.Join(<-one, <-two); err != nil {
			t.Error(err)
		}
		err := <-hangs
		var away *api.AwayError
		if !errors.As(err, &away) || away.Host != "hangs" || time.Since(begun) != 3*hostPatience-2*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, done := s.begin(ctx, "interrupted")
		cancel()
		if err := done(ctx.Err()); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
