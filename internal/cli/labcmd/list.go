package labcmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/lab/cmd"
)

func newLabList(d cli.Deps, runDir *string) *cobra.Command {
	var out cli.Output
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the labs that run, the built-in scenarios and the experiments",
		Example: "  heddle lab list\n  heddle lab list -o json",
		Args:    cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := out.Check(); err != nil {
				return err
			}
			l, err := cmd.Labs(*runDir)
			if err != nil {
				return err
			}
			return out.Print(d, l, func(w io.Writer) error { return labTable(d, w, l) })
		},
	}
	out.Flag(c)
	return c
}

func labTable(d cli.Deps, w io.Writer, l *cmd.List) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "LAB\tSTATE\tSCENARIO\tNODES")
	for _, r := range l.Labs {
		var nodes []string
		for _, n := range r.Nodes {
			nodes = append(nodes, n.Name)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Name, r.State, r.Scenario, strings.Join(nodes, " "))
	}
	for _, part := range []struct {
		heading string
		entries []cmd.Entry
	}{{"SCENARIO", l.Scenarios}, {"EXPERIMENT", l.Experiments}} {
		fmt.Fprintf(t, "\n%s\n", part.heading)
		name := 0
		for _, e := range part.entries {
			name = max(name, len(e.Name))
		}
		for _, e := range part.entries {
			lead := e.Name
			for _, line := range cli.Wrap(e.Title, d.TextWidth()-name-2) {
				fmt.Fprintf(t, "%s\t%s\n", lead, line)
				lead = ""
			}
		}
	}
	return t.Flush()
}
