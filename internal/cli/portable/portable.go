package portable

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/sim"
)

// Exit statuses, the same as everywhere.
const (
	exitFailure = 1
	exitUsage   = 2
)

// Run runs the program on the named operating system and returns its exit status; it has written errors to stderr.
func Run(system string, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:   "heddle",
		Short: "A distributed virtual switch for Linux hypervisors",
		Long: "Heddle is a distributed virtual switch for Linux hypervisors. On " + system +
			" it simulates the experiments;\n" +
			"everything else needs Linux 6.6 or newer.",
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	lab := &cobra.Command{
		Use:   "lab",
		Short: "Run experiments",
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	status := exitUsage // for errors before a command has begun its work
	lab.AddCommand(newRun(system, stdout, &status), newCheck(system, &status))
	root.AddCommand(lab)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		fmt.Fprintf(stderr, "heddle: %v\n", err)
		return status
	}
	return 0
}

func newRun(system string, stdout io.Writer, status *int) *cobra.Command {
	var (
		output   string
		rows     []string
		simulate bool
	)
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "Simulate an experiment and print its table",
		Long: "Runs an experiment on the model alone: exact counts, no throughput. There are: " +
			strings.Join(experiment.Names(), ", ") + ".",
		Example: "  heddle lab run nested-mac-learning --simulate",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			format, err := report.ParseFormat(output)
			if err != nil {
				return err
			}
			e, err := experiment.Find(args[0])
			if err != nil {
				return err
			}
			if _, err := e.Select(rows); err != nil {
				return err
			}
			*status = exitFailure
			if !simulate {
				return fmt.Errorf("this is %s: real traffic takes Linux 6.6 or newer; add --simulate", system)
			}
			all, err := sim.Experiment(e, sim.Options{Rows: rows})
			if err != nil {
				return err
			}
			return sim.Report(e, all).Write(stdout, format)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", string(report.Table), "output format: table, json or yaml")
	c.Flags().StringSliceVar(&rows, "row", nil, "only these rows, in this order")
	c.Flags().BoolVar(&simulate, "simulate", false, "run it on the model alone: exact counts, no throughput, no root")
	return c
}

// newCheck returns the command that says whether labs can be built here.
func newCheck(system string, status *int) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check whether this machine can run labs",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			*status = exitFailure
			return fmt.Errorf("this is %s: labs take Linux 6.6 or newer", system)
		},
	}
}
