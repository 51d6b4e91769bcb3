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
	DefaultAgent    = "default"
	DefaultRunDir   = "/run/heddle"
	DefaultStateDir = "/var/lib/heddle"
)

// CallTimeout bounds one command to the agent.
const CallTimeout = 30 * time.Second

// Target identifies the agent to which a command talks.
type Target struct {
	Name, RunDir string
	// Of a command that may ask hosts by way of a controller: the flags of the command, and what they say.
	from                      *Target
	Set                       *pflag.FlagSet
	Controller, context, Host string
	getenv                    func(string) string
	// Within bounds calls that are made of one host of several; nil for the command's own context.
	Within context.Context
	// Patience is for how long a host works before it answers, beside what any may take.
	Patience time.Duration
}

// Flags adds --agent and --run-dir to a command and its subcommands.
func (t *Target) Flags(d Deps, c *cobra.Command) {
	f := c.PersistentFlags()
	f.StringVar(&t.Name, "agent", d.Env("HEDDLE_AGENT", DefaultAgent), "name of the agent (environment HEDDLE_AGENT)")
	f.StringVar(&t.RunDir, "run-dir", d.Env("HEDDLE_RUN_DIR", DefaultRunDir),
		"run directory of the agents (environment HEDDLE_RUN_DIR)")
}

func (d Deps) Env(name, otherwise string) string {
	if v := d.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

func (t *Target) Client() (api.Service, error) {
	switch f, err := t.Fleet(); {
	case err != nil:
		return nil, err
	case f != nil && t.Host == "":
		return nil, Usagef("this shows one host at a time: name it with --host (heddle host list)")
	case f != nil:
		return f.Host(t.Host), nil
	case t.from != nil:
		return t.from.Client()
	}
	if err := instance.CheckName(t.Name); err != nil {
		return nil, &UsageError{Err: err}
	}
	return api.NewClient(api.SocketPath(t.RunDir, t.Name)), nil
}

// Ask calls the agent, for at most callTimeout.
func Ask[T any](c *cobra.Command, t *Target, f func(context.Context, api.Service) (T, error)) (T, error) {
	var zero T
	client, err := t.Client()
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(t.Bound(c), CallTimeout)
	defer cancel()
	for try := 1; ; try++ {
		v, err := f(ctx, client)
		if err == nil || try == mostTries || !t.between(ctx, err) {
			return v, err
		}
	}
}

// Bound is the context of what is asked.
func (t *Target) Bound(c *cobra.Command) context.Context {
	if t.Within != nil {
		return t.Within
	}
	return c.Context()
}

// Title names the agent, or the hosts, that are asked.
func (t *Target) Title() string {
	switch all, err := t.Everywhere(); {
	case err == nil && all:
		return "all hosts"
	case t.Host != "":
		return t.Host
	case t.from != nil:
		return t.from.Name
	}
	return t.Name
}

// State requests the active state.
func (t *Target) State(c *cobra.Command) (*api.State, error) {
	return Ask(c, t, func(ctx context.Context, s api.Service) (*api.State, error) { return s.State(ctx) })
}

// Group returns a command that only has subcommands.
func Group(use, short, example string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example,
		Args: NoSubcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
}
