package cluster

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Who asks while the host is looking for its first controller waits for it, as long as a host that boots does, and no
// longer; afterwards nobody waits.
func TestS103_AHostThatBootsAsksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := func(c *Client) time.Duration {
			t.Helper()
			began := time.Now()
			if _, err := c.Claim(t.Context(), &controllerv1.PortClaim{}); !errors.Is(err, ErrNoController) {
				t.Errorf("%v", err)
			}
			if _, err := c.Describe(t.Context(), nil); !errors.Is(err, ErrNoController) {
				t.Errorf("%v", err)
			}
			return time.Since(began)
		}
		now := time.Now()
		c := New(Options{})
		if d := asks(c); d != 0 {
			t.Errorf("a client that does not run is waited for %v", d)
		}
		c.began.Store(&now)
		if d := asks(c); d != BootTime {
			t.Errorf("no controller answers, and it is waited for %v", d)
		}
		if d := asks(c); d != 0 {
			t.Errorf("later it is waited for %v", d)
		}
		again := time.Now()
		c.began.Store(&again)
		time.AfterFunc(2*time.Second, func() { c.firstOnce.Do(func() { close(c.first) }) })
		if d := asks(c); d != BootTime {
			t.Errorf("the controller that answers after 2 s ends the conversation, and it is asked again for %v", d)
		}
		again = time.Now()
		asked := 0
		err := c.whileItBoots(t.Context(), func() error {
			if asked++; asked < 3 {
				return ErrNoController
			}
			return io.EOF
		})
		if d := time.Since(again); !errors.Is(err, io.EOF) || d != 2*askAgainAfter {
			t.Errorf("one that answers the third question is asked for %v: %v", d, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		last := New(Options{})
		last.began.Store(&again)
		if last.awaitFirst(ctx, again.Add(BootTime)); ctx.Err() != nil && time.Since(again) > 2*BootTime {
			t.Error("who gives up is waited for")
		}
	})
}
