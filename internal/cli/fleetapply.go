package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

func newDefinition(d Deps) *cobra.Command {
	t := &fleetTarget{}
	c := group("definition", "What the controllers of a cluster define for its hosts",
		"  heddle definition show > fleet.yaml\n  heddle definition apply -f fleet.yaml --dry-run\n"+
			"  heddle definition apply -f fleet.yaml")
	c.Long = "The definition is what the controllers of a cluster keep: the distributed switches with their port " +
		"groups, and which device each uplink is on which host."
	t.flag(d, c, defaultController)
	c.AddCommand(newDefinitionApply(d, t), newDefinitionShow(d, t))
	return c
}

// defaultWait is how long apply waits for the hosts.
const defaultWait = 30 * time.Second

func newDefinitionApply(d Deps, t *fleetTarget) *cobra.Command {
	o := &output{}
	var file string
	q := api.Define{}
	c := &cobra.Command{
		Use: "apply -f FILE", Short: "Make the definition what a file says (all or nothing)",
		Long: "Make the definition what a file says (all or nothing), and wait until the hosts that are connected " +
			"have " +
			"it active. It says which objects change, which hosts that concerns, and who does not have it active " +
			"yet. A " +
			"port group that is in use is not removed without --force.\n\n" +
			"With --revision the change is refused if the definition is at another revision: somebody else has " +
			"changed it.",
		Example: "  heddle definition apply -f fleet.yaml --dry-run\n  heddle definition apply -f fleet.yaml --wait 1m",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			b, err := readFile(c.Context(), d, file)
			if err != nil {
				return err
			}
			q.File, q.Content = fileName(file), string(b)
			out, err := askFleet(c, t, q.Wait, func(ctx context.Context, f *api.Fleet) (*api.Defined, error) {
				return f.Define(ctx, q)
			})
			if err != nil {
				return err
			}
			if err := o.print(d, out, func(w io.Writer) error { return printDefined(w, out, q.DryRun) }); err != nil {
				return err
			}
			if len(out.Waiting) > 0 && q.Wait > 0 {
				return fmt.Errorf("%d of %d hosts do not have the definition active yet", len(out.Waiting),
					len(out.Hosts))
			}
			return nil
		},
	}
	fileFlag(c, &file)
	c.Flags().BoolVar(&q.DryRun, "dry-run", false, "only print what would change")
	c.Flags().BoolVar(&q.Force, "force", false, "remove port groups that are in use")
	c.Flags().Int64Var(&q.Revision, "revision", 0, "the revision that the change was made on")
	c.Flags().DurationVar(&q.Wait, "wait", defaultWait, "how long to wait for the hosts; 0 for not at all")
	o.flag(c)
	return c
}

func printDefined(w io.Writer, out *api.Defined, dry bool) error {
	var lines []string
	if len(out.Changes) == 0 {
		lines = append(lines, "nothing changes")
	}
	lines = append(lines, out.Changes...)
	if len(out.Hosts) > 0 {
		lines = append(lines, concerned(len(out.Hosts))+": "+strings.Join(out.Hosts, ", "))
	}
	if dry {
		lines = append(lines, "nothing was changed (dry run)")
	} else {
		lines = append(lines, fmt.Sprintf("revision %d", out.Revision))
	}
	for _, p := range out.Waiting {
		lines = append(lines, fmt.Sprintf("not active on %s: %s", p.Host, strings.Join(p.Problems, "; ")))
	}
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

func concerned(n int) string {
	if n == 1 {
		return "1 host concerned"
	}
	return fmt.Sprintf("%d hosts concerned", n)
}

func newDefinitionShow(d Deps, t *fleetTarget) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use: "show", Short: "Print the definition as YAML", Example: "  heddle definition show > fleet.yaml",
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			def, err := askFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.Definition, error) {
				return f.Definition(ctx)
			})
			if err != nil {
				return err
			}
			return o.print(d, def, func(w io.Writer) error {
				_, err := io.WriteString(w, def.Content)
				return err
			})
		},
	}
	o.flag(c)
	return c
}
