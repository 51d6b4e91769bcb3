package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// DefaultController is the socket of a controller on this machine.
const DefaultController = "/run/heddle-controller/api.sock"

// FleetTarget says which controller a command talks to.
type FleetTarget struct {
	Address string
	Context string
	// Otherwise is where the controller is unless somebody says.
	Otherwise string
	Getenv    func(string) string
}

// Flag adds --controller and --context to a command and those below it. otherwise is where the controller is unless
// somebody says.
func (t *FleetTarget) Flag(d Deps, c *cobra.Command, otherwise string) {
	t.Otherwise, t.Getenv = otherwise, d.Getenv
	f := c.PersistentFlags()
	f.StringVar(&t.Address, "controller", d.Getenv("HEDDLE_CONTROLLER"), "where a controller answers: the path of its "+
		"socket, or https://HOST:PORT (environment HEDDLE_CONTROLLER; default: the current context, else the socket "+
		"on this machine)")
	f.StringVar(&t.Context, "context", d.Getenv("HEDDLE_CONTEXT"), "name of a context (heddle context list; "+
		"environment HEDDLE_CONTEXT)")
}

// AskFleet calls a controller with a bound on how long it may take.
func AskFleet[T any](c *cobra.Command, t *FleetTarget, within time.Duration, f func(context.Context, *api.Fleet) (T,
	error)) (T, error) {
	var zero T
	client, err := t.Client()
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(c.Context(), CallTimeout+within)
	defer cancel()
	return f(ctx, client)
}
