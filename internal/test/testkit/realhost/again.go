package realhost

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

// unwritten is how a controller says that etcd takes no change at present: the change was not made, or it is not known
// whether it was. Etcd on a busy machine is late now and then, which ends by itself.
const unwritten = "the cluster's state can't be written now"

// Again asks for a change that may be asked for twice, and asks again while etcd takes none, as whoever gets that
// answer does. It gives the last answer's error.
func Again(t *testing.T, ask func() error) error {
	t.Helper()
	for end := time.Now().Add(Patience); ; time.Sleep(100 * time.Millisecond) {
		err := ask()
		if err == nil || !strings.Contains(err.Error(), unwritten) || time.Now().After(end) {
			return err
		}
		t.Logf("asked again: %v", err)
	}
}

// gone is Again for what removes something. Where it is not known whether it did, it may not be there any more.
func gone(t *testing.T, remove func() error) error {
	t.Helper()
	attempts := 0
	err := Again(t, func() error { attempts++; return remove() })
	var known *api.Error
	if attempts > 1 && errors.As(err, &known) && known.Kind == api.NotFound {
		return nil
	}
	return err
}

// Defines is Fleet.Define for a definition that may be asked for twice: without stages, and not together.
func (c *Controller) Defines(q api.Define) (out *api.Defined, err error) {
	c.T.Helper()
	err = Again(c.T, func() error {
		out, err = c.Fleet.Define(c.T.Context(), q)
		return err
	})
	return out, err
}

// JoinToken is Fleet.JoinToken: one that nobody has heard of is no matter.
func (c *Controller) JoinToken(ctx context.Context, terms api.JoinTerms) (token *api.JoinToken, err error) {
	c.T.Helper()
	err = Again(c.T, func() error {
		token, err = c.Fleet.JoinToken(ctx, terms)
		return err
	})
	return token, err
}

// RemoveHost is Fleet.RemoveHost.
func (c *Controller) RemoveHost(ctx context.Context, name string) error {
	c.T.Helper()
	return gone(c.T, func() error { return c.Fleet.RemoveHost(ctx, name) })
}

// RevokeToken is Fleet.RevokeToken.
func (c *Controller) RevokeToken(ctx context.Context, id string) error {
	c.T.Helper()
	return gone(c.T, func() error { return c.Fleet.RevokeToken(ctx, id) })
}

// Certain is the definition as the controller has it when it is sure of that. One that has just lost others says that
// what it shows may be old, and is asked again.
func (c *Controller) Certain() (d *api.Definition) {
	c.T.Helper()
	c.Await(c.Name+" is sure of its definition", func() (sure bool) {
		var err error
		d, err = c.Fleet.Definition(c.T.Context())
		return err == nil && d.Stale == ""
	})
	return d
}

// Stages begins a change in stages, which begins once: where it is not known whether it did, the rollouts say so, by
// its message, which no other one has.
func (c *Controller) Stages(q api.Define) (id string) {
	c.T.Helper()
	err := Again(c.T, func() error {
		list, err := c.Rollouts(c.T.Context())
		if err != nil {
			return err
		}
		for _, r := range list {
			if r.Message == q.Message {
				id = r.ID
				return nil
			}
		}
		out, err := c.Fleet.Define(c.T.Context(), q)
		if err == nil {
			id = out.Rollout.ID
		}
		return err
	})
	if err != nil {
		c.T.Fatal(err)
	}
	return id
}
