package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"heddle/internal/lab"
	"heddle/internal/lab/attack"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/hostile"
	"heddle/internal/lab/live"
	"heddle/internal/lab/msgsize"
	"heddle/internal/lab/outage"
	"heddle/internal/lab/report"
	"heddle/internal/lab/run"
	"heddle/internal/lab/sim"
)

// labRun is what the flags of "lab run" ask for.
type labRun struct {
	out             output
	report          reportFile
	runDir          *string
	rows            []string
	quick, simulate bool
	check           bool
}

func newLabRun(d Deps, runDir *string) *cobra.Command {
	f := labRun{runDir: runDir}
	c := &cobra.Command{
		Use:   "run EXPERIMENT",
		Short: "Run an experiment, on real traffic or simulated",
		Long: "Runs an experiment: builds the lab of every row, measures, removes the lab, and prints a table and the " +
			"conclusions. With --simulate nothing is built: the model of a switch and a simulated network compute how " +
			"often a ping is answered and which links its frames take, exactly and without root, but no throughput.\n\n" +
			"Experiments: " + strings.Join(append(experiment.Names(), live.Name, outage.Name, outage.TeamingName, hostile.Name, attack.Name, msgsize.Name), ", ") + ". " +
			"nested-mac-learning and placement-paths can be simulated; the others need real traffic.",
		Example: "  heddle lab run nested-mac-learning\n  heddle lab run nested-mac-learning --simulate\n  heddle lab run placement-paths --quick -o json\n  heddle lab run failover --report failover.html",
		Args:    exactly("EXPERIMENT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.out.check(); err != nil {
				return err
			}
			if err := f.report.check(c, args); err != nil {
				return err
			}
			switch args[0] {
			case outage.Name:
				return f.onOutages(c.Context(), d, outage.Name, outage.Options.Check, outage.Run)
			case outage.TeamingName:
				return f.onOutages(c.Context(), d, outage.TeamingName, outage.Options.CheckTeaming, outage.RunTeaming)
			}
			if args[0] == hostile.Name {
				return f.hostileNeighbour(c.Context(), d)
			}
			if args[0] == attack.Name {
				return f.hostileGuest(c.Context(), d)
			}
			if args[0] == msgsize.Name {
				return f.messageSize(c.Context(), d)
			}
			if args[0] == live.Name {
				return f.liveChange(c.Context(), d)
			}
			if err := isExperiment(args[0]); err != nil {
				return err
			}
			e, err := experiment.Find(args[0])
			if err != nil {
				return asUsage(err)
			}
			if _, err := e.Select(f.rows); err != nil {
				return asUsage(err)
			}
			if f.simulate {
				return f.onModel(d, e)
			}
			return f.onTraffic(c.Context(), d, e)
		},
	}
	f.out.flag(c)
	f.report.flag(c)
	c.Flags().StringSliceVar(&f.rows, "row", nil, "only these rows, in this order")
	c.Flags().BoolVar(&f.quick, "quick", false, "take at most a minute, at the price of a wider spread")
	c.Flags().BoolVar(&f.check, "check", false, "exit with status 1 when a budget is not met")
	c.Flags().BoolVar(&f.simulate, "simulate", false, "run it on the model alone: exact counts, no throughput, no root")
	return c
}

// onTraffic runs the experiment in real labs.
func (f *labRun) onTraffic(ctx context.Context, d Deps, e *experiment.Experiment) error {
	if err := needRoot("run an experiment"); err != nil {
		return fmt.Errorf("%w, or add --simulate", err)
	}
	return f.inLabs(ctx, d, func(ctx context.Context, progress func(string)) (*report.Report, error) {
		all, err := run.Experiment(ctx, e, run.Options{RunDir: *f.runDir, Quick: f.quick, Rows: f.rows, Progress: progress})
		if err != nil {
			return nil, err
		}
		return run.Report(e, all), nil
	})
}

// inLabs has measure run in real labs, with its progress on a terminal, until a hangup, and shows what it reports.
func (f *labRun) inLabs(ctx context.Context, d Deps, measure func(ctx context.Context, progress func(string)) (*report.Report, error)) error {
	ctx, stop := untilHangup(ctx)
	defer stop()
	busy := run.BusyNote()
	p := newProgress(d.Stderr)
	rep, err := measure(ctx, p.say)
	p.clear()
	if err != nil {
		return interrupted(ctx, err)
	}
	if busy != "" {
		rep.Notes = append(rep.Notes, busy)
	}
	return f.show(d, rep)
}

// trafficOnly refuses to simulate an experiment that the model has no answer to, and to run it without root.
func (f *labRun) trafficOnly(name string) error {
	if f.simulate {
		return usagef("%s measures time, which the model has none of: leave --simulate out", name)
	}
	return needRoot("run an experiment")
}

// liveChange changes running ports in a real lab.
func (f *labRun) liveChange(ctx context.Context, d Deps) error {
	if err := f.trafficOnly(live.Name); err != nil {
		return err
	}
	return f.inLabs(ctx, d, func(ctx context.Context, progress func(string)) (*report.Report, error) {
		all, ports, err := live.Run(ctx, live.Options{RunDir: *f.runDir, Quick: f.quick, Rows: f.rows, Progress: progress})
		if errors.Is(err, experiment.ErrUnknown) {
			return nil, &UsageError{Err: err}
		}
		if err != nil {
			return nil, err
		}
		return live.Report(all, ports), nil
	})
}

// onOutages lets uplinks fail or fill in a real lab.
func (f *labRun) onOutages(ctx context.Context, d Deps, name string, check func(outage.Options) error, measure func(context.Context, outage.Options) (*report.Report, error)) error {
	o := outage.Options{RunDir: *f.runDir, Quick: f.quick, Rows: f.rows}
	if err := check(o); err != nil {
		return &UsageError{Err: err}
	}
	if err := f.trafficOnly(name); err != nil {
		return err
	}
	return f.inLabs(ctx, d, func(ctx context.Context, progress func(string)) (*report.Report, error) {
		o.Progress = progress
		return measure(ctx, o)
	})
}

// onModel runs the experiment on the model alone.
func (f *labRun) onModel(d Deps, e *experiment.Experiment) error {
	all, err := sim.Experiment(e, sim.Options{Rows: f.rows})
	if err != nil {
		return err
	}
	return f.show(d, sim.Report(e, all))
}

func (f *labRun) show(d Deps, r *report.Report) error {
	if r.Title == "" {
		r.Title = experimentTitle(r.Name)
	}
	if err := r.Write(d.Stdout, report.Format(f.out.format)); err != nil {
		return err
	}
	if err := f.report.write(r); err != nil {
		return err
	}
	if f.check {
		return r.Check()
	}
	return nil
}

// newLabCheck says whether labs can be built here, by trying everything that they take.
func newLabCheck(d Deps) *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Check whether this machine can run labs",
		Long: "Loads the switch program into the kernel and makes every kind of device that labs consist of, in a " +
			"network namespace of its own that it removes again. Exits with status 1 and the reason when " +
			"something is missing.",
		Example: "  heddle lab check || heddle lab run nested-mac-learning --simulate",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := lab.Check(); err != nil {
				return err
			}
			_, err := fmt.Fprintln(d.Stdout, "labs can be built here")
			return err
		},
	}
}

// newLabExec runs a command in a node's namespace. Unlike "ip netns exec" it leaves the mounts alone, so that what agents
// pinned stays visible.
func newLabExec(d Deps, runDir *string) *cobra.Command {
	c := &cobra.Command{
		Use:     "exec LAB NODE [COMMAND…]",
		Short:   "Run a command, or a shell, inside a node of a lab",
		Example: "  heddle lab exec nested-mac-learning n1 ping 192.168.69.203\n  heddle lab exec nested-mac-learning esx1",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s takes a lab and a node, and may be given a command (see %q)", c.CommandPath(), c.CommandPath()+" --help")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			ns, err := lab.Namespace(*runDir, args[0], args[1])
			if err != nil {
				return &UsageError{Err: err}
			}
			if err := needRoot("enter a lab"); err != nil {
				return err
			}
			command := args[2:]
			if len(command) == 0 {
				command = []string{shell(d)}
			}
			cmd := exec.CommandContext(c.Context(), command[0], command[1:]...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = d.Stdin, d.raw, d.Stderr
			if err := ns.Start(cmd); err != nil {
				return fmt.Errorf("start %s: %w", command[0], err)
			}
			if err := cmd.Wait(); err != nil {
				return &SilentError{Status: max(1, cmd.ProcessState.ExitCode())}
			}
			return nil
		},
	}
	c.Flags().SetInterspersed(false) // what follows the node is the command's
	return c
}

func shell(d Deps) string {
	if s := d.Getenv("SHELL"); s != "" {
		return s
	}
	return "/bin/sh"
}

// progress is one line that is overwritten with what is being done now, where a person can see it.
type progress struct{ terminal *os.File } // nil: nobody watches

func newProgress(w io.Writer) *progress {
	f, ok := w.(*os.File)
	if !ok || !isTerminal(f) {
		return &progress{}
	}
	return &progress{terminal: f}
}

func (p *progress) say(what string) {
	if p.terminal == nil {
		return
	}
	// A line that wraps could not be overwritten.
	if width, _, err := term.GetSize(int(p.terminal.Fd())); err == nil && width > 1 && utf8.RuneCountInString(what) >= width {
		what = string([]rune(what)[:width-1])
	}
	fmt.Fprintf(p.terminal, "\r\x1b[K%s", what)
}

func (p *progress) clear() {
	if p.terminal != nil {
		fmt.Fprint(p.terminal, "\r\x1b[K")
	}
}
