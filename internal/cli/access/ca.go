package access

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
)

func NewCA(d cli.Deps) *cobra.Command {
	t := &cli.FleetTarget{}
	c := cli.Group("ca", "The root of a cluster's certificates, and its rotation",
		"  heddle ca show\n  heddle ca rotate")
	c.Long =
		"Each cluster has an authority of its own, whose root signs the certificates of controllers and hosts. A " +
			"rotation puts another root in its place, in three steps: the next root is announced, so that everybody " +
			"trusts both; it issues from then on; the old one is trusted no more. Hosts renew their certificates " +
			"meanwhile, and nothing is interrupted."
	t.Flag(d, c, cli.DefaultController)
	c.AddCommand(newCAShow(d, t), newCARotate(d, t), newCACancel(d, t))
	return c
}

func newCAShow(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "show", Short: "Show the roots, and how far a rotation is", Example: "  heddle ca show",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			root, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.Root, error) {
				return f.Root(ctx)
			})
			if err != nil {
				return err
			}
			return o.Print(d, root, func(w io.Writer) error { return printRoot(w, root) })
		},
	}
	o.Flag(c)
	return c
}

func printRoot(w io.Writer, root *api.Root) error {
	tab := &cli.Table{Head: []string{"ROOT", "USE", "ENDS"}}
	for i, r := range root.Roots {
		use := "issues"
		switch {
		case !r.Issues && root.Stage == api.RootAnnounced:
			use = "trusted, the next one"
		case !r.Issues:
			use = "trusted, the one before"
		}
		tab.Add("sha256:"+root.Roots[i].Fingerprint, use, r.Ends.UTC().Format(time.DateOnly))
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	text := "no rotation is under way"
	if root.Stage != api.RootSteady {
		text = fmt.Sprintf("a rotation is under way: %s since %s; go on with \"heddle ca rotate\"", root.Stage,
			root.Changed.Local().Format(time.DateTime))
	}
	if len(root.Waiting) > 0 {
		text += fmt.Sprintf("\n%d hosts have to renew their certificates before: %s", len(root.Waiting),
			strings.Join(root.Waiting, ", "))
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func newCARotate(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	r := &rotation{d: d, target: t}
	c := &cobra.Command{
		Use: "rotate", Short: "Put another root in the place of the present one, without a gap",
		Long: "Put another root in the place of the present one. Before each step it waits until all hosts are ready " +
			"for it, for as long as --wait; where some are away it ends with their names and status 1, and goes on " +
			"where it was when it is called again. With --force it does not wait: who is away then has to join again.",
		Example: "  heddle ca rotate\n  heddle ca rotate --wait 1h", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), r.wait+cli.CallTimeout)
			defer cancel()
			r.until = time.Now().Add(r.wait)
			root, err := r.run(ctx)
			if err != nil {
				return err
			}
			return o.Print(d, root, func(w io.Writer) error { return printRoot(w, root) })
		},
	}
	c.Flags().DurationVar(&r.wait, "wait", 10*time.Minute, "how long to wait for the hosts in all")
	c.Flags().BoolVar(&r.force, "force", false, "do not wait for hosts that are not ready")
	o.Flag(c)
	return c
}

// rotation is one under way.
type rotation struct {
	d      cli.Deps
	target *cli.FleetTarget
	wait   time.Duration
	until  time.Time
	force  bool
}

// lookAgain is how often a rotation looks whether the hosts are ready.
const lookAgain = 500 * time.Millisecond

// run makes all steps that are left.
func (r *rotation) run(ctx context.Context) (*api.Root, error) {
	root, err := r.look(ctx)
	if err != nil {
		return nil, err
	}
	if root.Stage == api.RootSteady {
		if root, err = r.step(ctx, api.RootAnnounce, "the next root is announced"); err != nil {
			return nil, err
		}
	}
	if root.Stage == api.RootAnnounced {
		if err := r.ready(ctx); err != nil {
			return nil, err
		}
		if root, err = r.step(ctx, api.RootSwitch, "the next root issues"); err != nil {
			return nil, err
		}
	}
	if root.Stage == api.RootSwitched {
		if err := r.ready(ctx); err != nil {
			return nil, err
		}
		return r.step(ctx, api.RootFinish, "the root before is trusted no more")
	}
	return root, nil
}

// look asks by a connection of its own each time, by which a context learns the roots that the controller shows now.
func (r *rotation) look(ctx context.Context) (*api.Root, error) {
	client, err := r.target.Client()
	if err != nil {
		return nil, err
	}
	return client.Root(ctx)
}

func (r *rotation) step(ctx context.Context, step api.RootStep, said string) (*api.Root, error) {
	client, err := r.target.Client()
	if err != nil {
		return nil, err
	}
	root, err := client.RotateRoot(ctx, step, r.force)
	if err == nil {
		_, err = fmt.Fprintln(r.d.Stderr, said)
	}
	return root, err
}

// ready waits until no host waits.
func (r *rotation) ready(ctx context.Context) error {
	for !r.force {
		root, err := r.look(ctx)
		if err != nil {
			return err
		}
		if len(root.Waiting) == 0 {
			return nil
		}
		if !time.Now().Before(r.until) {
			return fmt.Errorf("%d hosts are not ready for the next step: %s; call this again when they are connected, "+
				"or with --force: they have to join again then", len(root.Waiting), strings.Join(root.Waiting, ", "))
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return errors.Join(ctx.Err(), errors.New("the rotation is not finished: call this again"))
		}
	}
	return nil
}

func newCACancel(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "cancel", Short: "Take a rotation back whose next root does not issue yet",
		Long: "Take a rotation back whose next root does not issue yet. Later there is no way back, since the key of " +
			"the root before is gone: finish it, and rotate once more.",
		Example: "  heddle ca cancel", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			root, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.Root, error) {
				return f.RotateRoot(ctx, api.RootCancel, false)
			})
			if err != nil {
				return err
			}
			return o.Print(d, root, func(w io.Writer) error { return printRoot(w, root) })
		},
	}
	o.Flag(c)
	return c
}
