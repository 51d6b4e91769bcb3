package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// defaultController is the socket of a controller on this machine.
const defaultController = "/run/heddle-controller/api.sock"

// fleetTarget says which controller a command talks to.
type fleetTarget struct {
	address string
	context string
	// otherwise is where the controller is unless somebody says.
	otherwise string
	getenv    func(string) string
}

// flag adds --controller and --context to a command and those below it. otherwise is where the controller is unless
// somebody says.
func (t *fleetTarget) flag(d Deps, c *cobra.Command, otherwise string) {
	t.otherwise, t.getenv = otherwise, d.Getenv
	f := c.PersistentFlags()
	f.StringVar(&t.address, "controller", d.Getenv("HEDDLE_CONTROLLER"), "where a controller answers: the path of its "+
		"socket, or https://HOST:PORT (environment HEDDLE_CONTROLLER; default: the current context, else the socket "+
		"on this machine)")
	f.StringVar(&t.context, "context", d.Getenv("HEDDLE_CONTEXT"), "name of a context (heddle context list; "+
		"environment HEDDLE_CONTEXT)")
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
