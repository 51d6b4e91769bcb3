package hooks

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/attach/incus"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

func NewIncusFollow(d cli.Deps) *cobra.Command {
	t, socket, once := &cli.Target{}, "", false
	c := &cobra.Command{
		Use: "incus-follow", Short: "Connect the adapters of Incus's instances",
		Long: "Connect the adapters of Incus's containers and VMs to the port groups that user.heddle names in their " +
			"configuration, as they start, are plugged or arrive from another host, and disconnect them as they " +
			"stop. It runs until it is ended, and looks whenever devices of this host come or go; with --once it " +
			"looks once, and the exit status is 1 when something could not be connected. " +
			"See how-to/attach/incus.md of the documentation.",
		Example: "  heddle incus-follow --once", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := t.Client()
			if err != nil {
				return err
			}
			f := &incus.Follower{Agent: client, Instances: incus.NewClient(socket).Instances,
				Host: incus.System{Proc: "/proc"}, Warn: func(format string, a ...any) {
					fmt.Fprintf(d.Stderr, "heddle: %s\n", printable.Text(fmt.Sprintf(format, a...)))
				}}
			if once {
				ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
				defer cancel()
				if _, err := f.Sync(ctx); err != nil {
					return &cli.SilentError{Status: cli.ExitFailure} // it has been written
				}
				return nil
			}
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGTERM)
			defer stop()
			changed, err := incus.Changes(ctx.Done())
			if err != nil {
				return err
			}
			f.Run(ctx, changed)
			return nil
		},
	}
	t.Flags(d, c)
	c.Flags().StringVar(&socket, "incus-socket", d.Env("HEDDLE_INCUS_SOCKET", "/var/lib/incus/unix.socket"),
		"socket at which Incus answers (environment HEDDLE_INCUS_SOCKET)")
	c.Flags().BoolVar(&once, "once", false, "look once, and end")
	return c
}

var _ incus.Agent = api.Service(nil)
