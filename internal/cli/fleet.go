package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// defaultController is the socket of a controller on this machine.
const defaultController = "/run/heddle-controller/api.sock"

// fleetTarget says which controller a command talks to.
type fleetTarget struct{ address string }

// flag adds --controller to a command and those below it. otherwise is where the controller is unless somebody says.
func (t *fleetTarget) flag(d Deps, c *cobra.Command, otherwise string) {
	c.PersistentFlags().StringVar(&t.address, "controller", d.env("HEDDLE_CONTROLLER", otherwise),
		"socket of a controller (environment HEDDLE_CONTROLLER)")
}

func (t *fleetTarget) client() (*api.Fleet, error) {
	path := strings.TrimPrefix(t.address, "unix:")
	if !strings.HasPrefix(path, "/") {
		return nil, usagef("--controller %s: give the path of a controller's socket, such as %s", t.address,
			defaultController)
	}
	return api.NewFleet(path), nil
}

// askFleet calls a controller with a bound on how long it may take.
func askFleet[T any](c *cobra.Command, t *fleetTarget, within time.Duration, f func(context.Context, *api.Fleet) (T,
	error)) (T, error) {
	var zero T
	client, err := t.client()
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), callTimeout+within)
	defer cancel()
	return f(ctx, client)
}
