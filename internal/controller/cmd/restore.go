package cmd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/controller"
)

func newRestore(stderr io.Writer) *cobra.Command {
	var o controller.Options
	var r controller.Restore
	var output string
	c := &cobra.Command{
		Use: "restore [FILE]", Short: "Bring back the cluster's state from a snapshot, or from what is left",
		Long: "Bring back the cluster's state as one controller, which others join afterwards. Stop the controllers " +
			"first.\n\nWith FILE the state is that of a snapshot; what the data directory had is moved aside. With " +
			"--force-new-cluster it is\nwhat this controller has itself: for when the majority of the controllers is " +
			"lost for good. Hosts take the restored\nstate when they connect; what they have connected since goes on " +
			"and is reported.\n\nA snapshot does not say what was taken out after it was made: a stolen host, a " +
			"token of somebody who left. So its\nhosts and tokens count when somebody has confirmed them, by " +
			"\"heddle-controller confirm\", or with --confirm-all at\nonce; hosts go on by what they have until " +
			"then. Tokens for joining, and of people who signed in, are removed.",
		Example: "  heddle-controller restore /var/backups/heddle.db\n" +
			"  heddle-controller restore /var/backups/heddle.db --secret /root/secret\n" +
			"  heddle-controller restore --force-new-cluster",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				r.File = args[0]
			}
			o.Log = slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))
			out, err := controller.RestoreState(c.Context(), o, r)
			if err != nil {
				return err
			}
			t := &there{output: output}
			return t.print(c.OutOrStdout(), out, func(w io.Writer) error { return printRestored(w, out) })
		},
	}
	dirFlag(c.Flags(), &o.Dir)
	socketFlag(c.Flags(), &o.Socket)
	c.Flags().StringVar(&r.Secret, "secret", "", "file with the cluster's secret, where the data directory has none")
	c.Flags().BoolVar(&r.ConfirmAll, "confirm-all", false,
		"with FILE: all hosts and tokens of the snapshot count at once")
	c.Flags().BoolVar(&r.Force, "force-new-cluster", false, "go on alone with what this controller has")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	return c
}

func printRestored(w io.Writer, r *controller.Restored) error {
	lines := []string{fmt.Sprintf("cluster %s is restored: %d hosts, definition at revision %d, epoch %d", r.Cluster,
		r.Hosts, r.Revision, r.Epoch)}
	if r.Aside != "" {
		lines = append(lines, "what was there before is in "+r.Aside)
	}
	for _, name := range r.Removed {
		lines = append(lines, fmt.Sprintf("controller %s is no longer part of the cluster: it joins anew", name))
	}
	if len(r.UnconfirmedHosts) > 0 {
		lines = append(lines, "these hosts count when they are confirmed: "+some(r.UnconfirmedHosts))
	}
	if len(r.UnconfirmedTokens) > 0 {
		lines = append(lines, "these tokens count when they are confirmed: "+some(r.UnconfirmedTokens))
	}
	if r.JoinTokens+r.SignIns > 0 {
		lines = append(lines, fmt.Sprintf("removed: tokens for joining (%d) and of people who signed in (%d)",
			r.JoinTokens, r.SignIns))
	}
	lines = append(lines, "start the controller")
	if len(r.UnconfirmedHosts)+len(r.UnconfirmedTokens) > 0 {
		lines = append(lines, "then confirm what was not taken out after the snapshot was made: heddle-controller "+
			"confirm NAME…, or heddle-controller confirm --all")
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// mostNamed is how many hosts or tokens a line names.
const mostNamed = 20

// some names the first of a list.
func some(list []string) string {
	text := strings.Join(list[:min(len(list), mostNamed)], ", ")
	if n := len(list) - mostNamed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func newConfirm() *cobra.Command {
	t := &there{}
	var q api.ConfirmRestored
	c := &cobra.Command{
		Use: "confirm [NAME...]", Short: "Confirm hosts and tokens of a snapshot from which the state was restored",
		Long: "Confirm that hosts and tokens still count which the state has from a snapshot (\"heddle-controller " +
			"restore\"): hosts\nby their names, tokens by their ids. They are back by themselves then. Take out the " +
			"others: \"heddle host remove\",\n\"heddle access token revoke\". Without a name it lists those that wait.",
		Example: "  heddle-controller confirm\n  heddle-controller confirm esx1 esx2\n" +
			"  heddle-controller confirm --all",
		RunE: func(c *cobra.Command, args []string) error {
			q.Names = args
			return ask(c, t, func(ctx context.Context, f *api.Fleet) (*api.RestoredIdentities, error) {
				return f.ConfirmRestored(ctx, q)
			}, printConfirmed)
		},
	}
	c.Flags().BoolVar(&q.All, "all", false, "confirm all of them")
	t.flags(c)
	return c
}

func printConfirmed(w io.Writer, out *api.RestoredIdentities) error {
	var lines []string
	for _, one := range out.Confirmed {
		lines = append(lines, fmt.Sprintf("%s %s counts again (%s)", one.Kind, one.Name, one.ID))
	}
	for _, one := range out.Waiting {
		lines = append(lines, fmt.Sprintf("%s %s waits to be confirmed (%s)", one.Kind, one.Name, one.ID))
	}
	if len(lines) == 0 {
		lines = []string{"nothing waits to be confirmed"}
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	if err == nil && out.Stopped != "" {
		return fmt.Errorf("those that are named as confirmed count, and the others wait still, repeat this: %s",
			out.Stopped)
	}
	return err
}
