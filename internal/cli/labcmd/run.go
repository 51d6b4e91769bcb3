package labcmd

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/lab"
	"heddle/internal/lab/cmd"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
)

// labRun has the flags of "lab run".
type labRun struct {
	cmd.Run
	out    cli.Output
	report cli.ReportFile
	check  bool
}

func newLabRun(d cli.Deps, runDir *string) *cobra.Command {
	var f labRun
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "Run an experiment, on real traffic or simulated",
		Long: "Runs an experiment: builds the lab of every row, measures, removes the lab, and prints a " +
			"table and the " +
			"conclusions. With --simulate nothing is built: the model of a switch and a simulated network " +
			"compute how " +
			"often a ping is answered and which links its frames take, exactly and without root, but no " +
			"throughput.\n\n" +
			"Experiments: " + strings.Join(cmd.ExperimentNames(), ", ") + ". " +
			"nested-mac-learning and placement-paths can be simulated; the others need real traffic.",
		Example: "  heddle lab run nested-mac-learning\n  heddle lab run nested-mac-learning --simulate\n  heddle " +
			"lab run placement-paths --quick -o json\n  heddle lab run failover --report failover.html\n  heddle lab " +
			"run migration --row namespace --moves 5",
		Args: cli.Exactly("EXPERIMENT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.out.Check(); err != nil {
				return err
			}
			if err := f.report.Check(c, args); err != nil {
				return err
			}
			p := cli.NewProgress(d.Stderr)
			f.RunDir, f.Progress = *runDir, p.Say
			rep, err := f.Experiment(c.Context(), args[0])
			p.Clear()
			if err != nil {
				return err
			}
			return f.show(d, args[0], rep)
		},
	}
	f.out.Flag(c)
	f.report.Flag(c)
	c.Flags().StringSliceVar(&f.Rows, "row", nil, "only these rows, in this order")
	c.Flags().BoolVar(&f.Quick, "quick", false, "take at most a minute, at the price of a wider spread")
	c.Flags().IntVar(&f.Moves, "moves", 0, "for migration and port-move: the number of moves of each row (default 20)")
	c.Flags().Float64Var(&f.Rate, "rate", 0, "for migration and port-move: numbered packets a second each way "+
		"(default 10000)")
	c.Flags().BoolVar(&f.check, "check", false, "exit with status 1 when a budget is not met")
	c.Flags().BoolVar(&f.Simulate, "simulate", false, "run it on the model alone: exact counts, no throughput, no root")
	return c
}

// next returns a suggestion after an experiment whose rows are labs, "" for others.
func next(name string, r *report.Report) string {
	if _, err := experiment.Find(name); err != nil || len(r.Rows) == 0 || len(r.Rows[0]) == 0 {
		return ""
	}
	row := fmt.Sprintf("%s/%v", name, r.Rows[0][0].Value)
	return fmt.Sprintf("\nTry next, as root: build the lab of a row and look into it, or write a report with plots.\n"+
		"  heddle lab up %s\n  heddle lab run %s --report %s.html\n", row, name, name)
}

func (f *labRun) show(d cli.Deps, name string, r *report.Report) error {
	if err := r.Write(d.Stdout, report.Format(f.out.Format)); err != nil {
		return err
	}
	if err := f.report.Write(r); err != nil {
		return err
	}
	if report.Format(f.out.Format) == report.Table {
		fmt.Fprint(d.Stdout, next(name, r))
	}
	if f.check {
		return r.Check()
	}
	return nil
}

// newLabCheck returns the command that checks whether labs can be built here, by trying everything that they need.
func newLabCheck(d cli.Deps) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use:   "check",
		Short: "Check whether this machine can run labs",
		Long: "Loads the switch program into the kernel and makes every kind of device that labs consist of, in a " +
			"network namespace of its own that it removes again. Exits with status 1 and the reason when " +
			"something is missing.",
		Example: "  heddle lab check || heddle lab run nested-mac-learning --simulate",
		Args:    cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			v, err := LabCheck{Able: true}, lab.Check()
			if err != nil {
				v = LabCheck{Reason: err.Error()}
			}
			return errors.Join(err, o.Print(d, v, func(w io.Writer) error {
				if !v.Able {
					return nil // the error says it
				}
				_, err := fmt.Fprintln(w, "labs can be built here")
				return err
			}))
		},
	}
	o.Flag(c)
	return c
}

// LabCheck says whether labs can be built, and why not.
type LabCheck struct {
	Able   bool   `json:"able"`
	Reason string `json:"reason,omitempty"`
}

// newLabExec runs a command in a node's namespace.
func newLabExec(d cli.Deps, runDir *string) *cobra.Command {
	c := &cobra.Command{
		Use:   "exec LAB NODE [COMMAND…]",
		Short: "Run a command, or a shell, inside a node of a lab",
		Long: "Runs a command, or a shell, inside a node of a lab. On a host, heddle finds the host's agent: " +
			"HEDDLE_RUN_DIR and HEDDLE_AGENT are set for the command. The command \"heddle\" is this program.",
		Example: "  heddle lab exec nested-mac-learning n1 ping 192.168.69.203\n  heddle lab exec " +
			"nested-mac-learning esx1 heddle port list\n  heddle lab exec nested-mac-learning esx1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("%s takes a lab and a node, and may be given a command (see %q)", c.CommandPath(),
					c.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			command := args[2:]
			if len(command) == 0 {
				command = []string{shell(d)}
			}
			run := cmd.Exec{RunDir: *runDir, Lab: args[0], Node: args[1], Command: command, Stdin: d.Stdin,
				Stdout: d.Raw, Stderr: d.RawErr}
			status, err := run.Run(c.Context())
			if err == nil && status != 0 {
				return &cli.SilentError{Status: status}
			}
			return err
		},
	}
	c.Flags().SetInterspersed(false) // what follows the node belongs to the command
	return c
}

func shell(d cli.Deps) string {
	if s := d.Getenv("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}
