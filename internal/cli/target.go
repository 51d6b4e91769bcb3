package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heddle/internal/agent/instance"
	"heddle/internal/api"
)

// Directories of agents unless flags or the environment say otherwise.
const (
	defaultAgent    = "default"
	defaultRunDir   = "/run/heddle"
	defaultStateDir = "/var/lib/heddle"
)

// callTimeout bounds one command to the agent.
const callTimeout = 30 * time.Second

// target identifies the agent to which a command talks.
type target struct {
	name, runDir string
	// Of a command that may ask hosts by way of a controller: the flags of the command, and what they say.
	from                      *target
	set                       *pflag.FlagSet
	controller, context, host string
	getenv                    func(string) string
	// within bounds calls that are made of one host of several; nil for the command's own context.
	within context.Context
	// patience is for how long a host works before it answers, beside what any may take.
	patience time.Duration
}

// flags adds --agent and --run-dir to a command and its subcommands.
func (t *target) flags(d Deps, c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&t.name, "agent", d.env("HEDDLE_AGENT", defaultAgent), "name of the agent (environment HEDDLE_AGENT)")
	f.StringVar(&t.runDir, "run-dir", d.env("HEDDLE_RUN_DIR", defaultRunDir),
		"run directory of the agents (environment HEDDLE_RUN_DIR)")
}

func (d Deps) env(name, otherwise string) string {
	if v := d.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func (t *target) client() (api.Service, error) {
	switch f, err := t.fleet(); {
	case err != nil:
		return nil, err
	case f != nil && t.host == "":
		return nil, usagef("this shows one host at a time: name it with --host (heddle host list)")
	case f != nil:
		return f.Host(t.host), nil
	case t.from != nil:
		return t.from.client()
	}
	if err := instance.CheckName(t.name); err != nil {
		return nil, &UsageError{Err: err}
	}
	return api.NewClient(api.SocketPath(t.runDir, t.name)), nil
}

// ask calls the agent, for at most callTimeout.
func ask[T any](c *cobra.Command, t *target, f func(context.Context, api.Service) (T, error)) (T, error) {
	var zero T
	client, err := t.client()
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(t.bound(c), callTimeout)
	defer cancel()
	for try := 1; ; try++ {
		v, err := f(ctx, client)
		if err == nil || try == mostTries || !t.between(ctx, err) {
			return v, err
		}
	}
}

// bound is the context of what is asked.
func (t *target) bound(c *cobra.Command) context.Context {
	if t.within != nil {
		return t.within
	}
	return c.Context()
}

// title names the agent, or the hosts, that are asked.
func (t *target) title() string {
	switch all, err := t.everywhere(); {
	case err == nil && all:
		return "all hosts"
	case t.host != "":
		return t.host
	case t.from != nil:
		return t.from.name
	}
	return t.name
}

// state requests the active state.
func (t *target) state(c *cobra.Command) (*api.State, error) {
	return ask(c, t, func(ctx context.Context, s api.Service) (*api.State, error) { return s.State(ctx) })
}

// group returns a command that only has subcommands.
func group(use, short, example string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: noSubcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}
