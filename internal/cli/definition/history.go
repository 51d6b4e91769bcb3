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

func newDefinitionHistory(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	q := api.ChangeQuery{}
	var since time.Duration
	c := &cobra.Command{
		Use: "history", Aliases: []string{"log"}, Short: "List the changes of the definition, the newest first",
		Long: "List the changes of the definition, the newest first: which revision each has made, when, by whom, " +
			"and why (-m of \"apply\"). \"definition diff\" says what a change did, \"definition rollback\" brings a " +
			"revision back.\n\nThe controllers keep 1000 changes, and more until the oldest can go; " +
			"--history-changes and --history-time of heddle-controller say otherwise.",
		Example: "  heddle definition history\n  heddle definition history --last 100 -o json\n" +
			"  heddle definition history --who ann --match db --since 30d",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if q.Limit <= 0 {
				return cli.Usagef("--last %d: give how many changes are listed at most", q.Limit)
			}
			if since > 0 {
				q.Since = time.Now().Add(-since)
			}
			list, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.DefinitionChanges, error) {
				return f.Changes(ctx, q)
			})
			if err != nil {
				return err
			}
			return o.Print(d, list, func(w io.Writer) error { return printPast(d, w, list) })
		},
	}
	c.Flags().IntVar(&q.Limit, "last", 20, "how many changes are listed at most")
	c.Flags().StringVar(&q.Who, "who", "", "changes that somebody of this `name` made")
	c.Flags().StringVar(&q.Text, "match", "", "changes with this `text` in their message, their file, or what they "+
		"changed")
	c.Flags().DurationVar(&since, "since", 0, "changes of this long ago and newer, such as 1h or 30d")
	c.Flags().Int64Var(&q.Before, "before", 0, "changes that were made on revisions below this one")
	o.Flag(c)
	return c
}

func printPast(d cli.Deps, w io.Writer, list *api.DefinitionChanges) error {
	head := []string{"REVISION", "TIME", "WHO", "WHY", "CHANGES"}
	tab := &cli.Table{Head: head, Keep: cli.Columns(head, "REVISION", "TIME")}
	gaps := 0
	for _, e := range list.Changes {
		why := e.Message
		switch {
		case e.Restores > 0 && why == "":
			why = fmt.Sprintf("back to revision %d", e.Restores)
		case why == "":
			why = e.File
		}
		if e.How != "" {
			why += " (" + e.How + ")"
		}
		what := strings.Join(e.Objects, ", ")
		if e.Left > 0 {
			what += fmt.Sprintf(" and %d more", e.Left)
		}
		if e.Gap && e.Base > 0 {
			gaps++
		}
		tab.Add(strconv.FormatInt(e.Revision, 10), e.At.Local().Format(time.DateTime), cli.Dash(printable.Text(e.Who)),
			cli.Dash(printable.Text(why)), cli.Dash(printable.Text(what)))
	}
	if err := tab.Write(w); err != nil {
		return err
	}
	if gaps > 0 {
		if _, err := fmt.Fprintf(d.Stderr, "before %s the definition was changed without a record, by a controller of "+
			"an earlier version or since a port was in use (gap in -o json)\n", ofChanges(gaps)); err != nil {
			return err
		}
	}
	if list.More > 0 {
		_, err := fmt.Fprintf(d.Stderr, "there are older changes: --before %d lists them\n", list.More)
		return err
	}
	return nil
}

func ofChanges(n int) string {
	if n == 1 {
		return "one of these changes"
	}
	return fmt.Sprintf("%d of these changes", n)
}

// revisionOf reads a revision as people write it.
func revisionOf(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n <= 0 {
		return 0, cli.Usagef("%q is no revision: \"heddle definition history\" lists them", text)
	}
	return n, nil
}

func newDefinitionDiff(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "diff REVISION [REVISION]", Short: "Show what is different between two revisions of the definition",
		Long: "Show what is different between two revisions of the definition, field by field; with one revision, " +
			"between that one and the definition as it is.",
		Example: "  heddle definition diff 42\n  heddle definition diff 42 57",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			var revisions [2]int64
			for i, text := range args {
				var err error
				if revisions[i], err = revisionOf(text); err != nil {
					return err
				}
			}
			out, err := cli.AskFleet(c, t, 0, func(ctx context.Context, f *api.Fleet) (*api.DefinitionDiff, error) {
				return f.Compare(ctx, revisions[0], revisions[1])
			})
			if err != nil {
				return err
			}
			return o.Print(d, out, func(w io.Writer) error {
				lines := objectLines(out.Objects)
				if len(lines) == 0 {
					lines = []string{fmt.Sprintf("revisions %d and %d are the same", out.From, out.To)}
				}
				_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
				return err
			})
		},
	}
	o.Flag(c)
	return c
}

func newDefinitionRollback(d cli.Deps, t *cli.FleetTarget) *cobra.Command {
	o := &cli.Output{}
	q, staged := api.Define{}, &stagedWay{}
	c := &cobra.Command{
		Use: "rollback REVISION", Short: "Make the definition what it was at an earlier revision",
		Long: "Make the definition what it was at an earlier revision (\"heddle definition history\"). That is a " +
			"change like any other: all or nothing, with a revision of its own, refused where it removes a port " +
			"group that is in use, and it can be rolled back.",
		Example: "  heddle definition rollback 42 --dry-run\n  heddle definition rollback 42 -m 'VLAN 20 was wrong'\n" +
			"  heddle definition rollback 42 --stages 1,100% --wait 2m",
		Args: cli.Exactly("REVISION"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if err := o.Check(); err != nil {
				return err
			}
			if q.Restore, err = revisionOf(args[0]); err != nil {
				return err
			}
			if err := staged.stages(c, &q); err != nil {
				return err
			}
			return define(c, d, t, o, q, staged.follow)
		},
	}
	defineFlags(c, &q)
	staged.flags(c)
	o.Flag(c)
	return c
}
