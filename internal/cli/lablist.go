package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
)

// labList is what "lab list" shows.
type labList struct {
	Labs        []*lab.Record `json:"labs"`
	Scenarios   []labEntry    `json:"scenarios"`
	Experiments []labEntry    `json:"experiments"`
}

// labEntry is something that comes with the program.
type labEntry struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

func newLabList(d Deps, runDir *string) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the labs that run, the built-in scenarios and the experiments",
		Example: "  heddle lab list\n  heddle lab list -o json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := out.check(); err != nil {
				return err
			}
			l, err := collectLabs(*runDir)
			if err != nil {
				return err
			}
			return out.print(d, l, l.table)
		},
	}
	out.flag(c)
	return c
}

func collectLabs(runDir string) (*labList, error) {
	labs, err := lab.List(runDir)
	if err != nil {
		return nil, err
	}
	l := &labList{Labs: append([]*lab.Record{}, labs...)}
	for _, name := range experiment.ScenarioNames() {
		s, err := experiment.Scenario(name)
		if err != nil {
			return nil, err
		}
		l.Scenarios = append(l.Scenarios, labEntry{name, s.Title})
	}
	l.Experiments, err = experiments()
	return l, err
}

func (l *labList) table(w io.Writer) error {
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
		entries []labEntry
	}{{"SCENARIO", l.Scenarios}, {"EXPERIMENT", l.Experiments}} {
		fmt.Fprintf(t, "\n%s\t\n", part.heading)
		for _, e := range part.entries {
			fmt.Fprintf(t, "%s\t%s\n", e.Name, e.Title)
		}
	}
	return t.Flush()
}
