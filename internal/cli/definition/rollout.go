package definition

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

func NewRollout(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("rollout", "Changes of the definition that hosts make in stages",
		"  heddle definition apply -f fleet.yaml --stages 1,10%,100%\n  heddle rollout show --follow\n"+
			"  heddle rollout abort")
	c.Long = "A rollout is a change of the definition that hosts make one stage after the other (heddle definition " +
		"apply --stages). The controllers drive it: after each stage they hold the hosts that have the change " +
		"against " +
		"those that do not, and halt when they fare worse. Where only one rollout is open, its ID need not be given."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newRolloutList(d, t), newRolloutShow(d, t), newRolloutPause(d, t), newRolloutResume(d, t),
		newRolloutAbort(d, t))
	return c
}

func newRolloutList(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "list", Short: "List rollouts, the newest first",
		Long:    "List the rollouts that are open, and those that ended lately, the newest first.",
		Example: "  heddle rollout list\n  heddle rollout list -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			return cli.AsFleet(c, d, t, o, func(ctx context.Context, f *api.Fleet) ([]api.Rollout, error) {
				return cli.NeverNil(f.Rollouts(ctx))
			}, func(w io.Writer, list []api.Rollout) error { return rolloutTable(list).Write(w) })
		},
	}
	o.Flag(c)
	return c
}

func rolloutTable(list []api.Rollout) *cli.Table {
	head := []string{"ROLLOUT", "STATE", "STAGE", "REVISION", "SWITCHES", "WHO", "STARTED", "WHY"}
	tab := &cli.Table{Head: head, Right: cli.Columns(head, "REVISION"), Keep: cli.Columns(head, "ROLLOUT", "STATE",
		"STAGE"),
		Names: cli.Columns(head, "SWITCHES")}
	for i := range list {
		r := &list[i]
		tab.Add(r.ID, string(r.State), fmt.Sprintf("%d of %d", r.Begun, len(r.Stages)),
			strconv.FormatInt(r.Revision, 10), rolloutSwitches(r), cli.Dash(printable.Text(r.Who)),
			r.Started.Local().Format(time.DateTime), cli.Dash(printable.Text(r.Message)))
	}
	return tab
}

func rolloutSwitches(r *api.Rollout) string {
	if len(r.Switches) == 1 && r.Switches[0] == "*" {
		return "all"
	}
	return cli.Dash(strings.Join(r.Switches, ", "))
}

// rolloutID is the argument of a command; "" for none.
func rolloutID(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

func newRolloutShow(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	var follow bool
	c := &cobra.Command{
		Use: "show [ROLLOUT]", Short: "Show a rollout: its stages, hosts and findings",
		Long: "Show how a rollout stands: its stages, their hosts, and what was found. Without ROLLOUT it is the one " +
			"that is open, or else the newest.\n\nWith --follow it is shown until it has ended, halted or was " +
			"paused; the exit status is 0 where all hosts have the change or get it when they are back.",
		Example: "  heddle rollout show\n  heddle rollout show r1041 --follow", Args: cli.AtMost("ROLLOUT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if follow {
				return followRollout(d, c, t, o, rolloutID(args))
			}
			r, err := askRollout(c, t, rolloutID(args))
			if err != nil {
				return err
			}
			return o.Print(d, r, func(w io.Writer) error { return printRollout(w, r) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "show how it goes until it has ended or halted")
	o.Flag(c)
	return c
}

func askRollout(c *cobra.Command, t *cli.FleetTarget, id string) (*api.Rollout, error) {
	return cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.Rollout, error) {
		return f.Rollout(ctx, id)
	})
}

// rolloutVerb is a command that changes how a rollout goes.
func rolloutVerb(d cli.Deps, t *cli.FleetTarget, c *cobra.Command,
	do func(context.Context, *api.Fleet, string) (*api.Rollout, error)) *cobra.Command {
	o := &cli.Output{}
	c.Args = cli.AtMost("ROLLOUT")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		r, err := cli.AskFleet(c, t, defaultWait, func(ctx context.Context, f *api.Fleet) (*api.Rollout, error) {
			return do(ctx, f, rolloutID(args))
		})
		if err != nil {
			return err
		}
		return o.Print(d, r, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, rolloutLine(r))
			return err
		})
	}
	o.Flag(c)
	return c
}

func newRolloutPause(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	return rolloutVerb(d, t, &cobra.Command{
		Use: "pause [ROLLOUT]", Short: "Keep the next stage of a rollout from beginning",
		Long: "Keep the next stage of a rollout from beginning. Hosts that have the change keep it, and hosts of " +
			"stages that have begun get it when they are back.",
		Example: "  heddle rollout pause"},
		func(ctx context.Context, f *api.Fleet, id string) (*api.Rollout, error) {
			return f.PauseRollout(ctx, id)
		})
}

func newRolloutResume(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	var all bool
	c := rolloutVerb(d, t, &cobra.Command{
		Use: "resume [ROLLOUT]", Short: "Go on with a rollout that was paused or has halted",
		Long: "Go on with a rollout that was paused or has halted: its hosts are watched anew, for the whole time. " +
			"What " +
			"is still so then halts it again. With --all all hosts get the change now, and nothing is compared any " +
			"more.",
		Example: "  heddle rollout resume\n  heddle rollout resume r1041 --all"},
		func(ctx context.Context, f *api.Fleet, id string) (*api.Rollout, error) {
			return f.ResumeRollout(ctx, id, all)
		})
	c.Flags().BoolVar(&all, "all", false, "give all hosts the change now, without further waits")
	return c
}

func newRolloutAbort(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	var force bool
	var message string
	c := rolloutVerb(d, t, &cobra.Command{
		Use: "abort [ROLLOUT]", Short: "Take the change of a rollout back from all hosts that have it",
		Long: "Take the change of a rollout back from all hosts that have it. The definition becomes what it was, " +
			"as a " +
			"revision of its own, so that \"heddle definition rollback\" can bring the change again. That is refused " +
			"where ports use a port group that the change added; --force does it all the same: their hosts go on by " +
			"what they have.",
		Example: "  heddle rollout abort\n  heddle rollout abort r1041 -m 'VLAN 20 was wrong'"},
		func(ctx context.Context, f *api.Fleet, id string) (*api.Rollout, error) {
			return f.AbortRollout(ctx, id, message, force)
		})
	c.Flags().BoolVar(&force, "force", false, "also where ports use what the change added")
	c.Flags().StringVarP(&message, "message", "m", "", "why it is taken back, for the history")
	return c
}
