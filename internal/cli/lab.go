package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"heddle/internal/host/interrupt"
	"heddle/internal/lab"
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/scenario"
	"heddle/internal/spec"
)

// newLab is the noun of labs: hosts, VMs and a physical network on this machine, and the experiments in them.
func newLab(d Deps) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Build hosts, VMs and a physical network here, and run experiments",
		Long: "A lab is a set of hypervisors, virtual machines, physical switches and routers made of network " +
			"namespaces on this machine, described by one scenario file. Every host runs the real agent.",
		Example: "  heddle lab list\n  heddle lab run nested-mac-learning",
		Args:    noSubcommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	runDir := c.PersistentFlags().String("run-dir", d.env("HEDDLE_RUN_DIR", defaultRunDir),
		"directory for labs and their agents (environment HEDDLE_RUN_DIR)")
	c.AddCommand(
		newLabUp(d, runDir), newLabDown(d, runDir), newLabList(d, runDir), newLabRun(d, runDir), newLabExec(d, runDir),
		newLabCheck(d), newLabGuest(),
	)
	return c
}

func newLabUp(d Deps, runDir *string) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "up SCENARIO",
		Short: "Build a lab and leave it running",
		Long: "Builds the lab of a built-in scenario, of a row of an experiment (EXPERIMENT/ROW) or of a scenario " +
			"file, waits until everything in it is ready, and leaves it running. \"heddle lab list\" shows the " +
			"scenarios and experiments.",
		Example: "  heddle lab up nested-mac-learning\n  heddle lab up nested-mac-learning/promiscuous-dual\n  heddle lab up ./mylab.yaml --name mine",
		Args:    exactly("SCENARIO"),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := findScenario(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := needRoot("build a lab"); err != nil {
				return err
			}
			ctx, stop := untilHangup(c.Context())
			defer stop()
			p := newProgress(d.Stderr)
			l, err := lab.Build(ctx, s, lab.Options{Name: name, RunDir: *runDir, Progress: p.say})
			p.clear()
			if err != nil {
				return interrupted(ctx, err)
			}
			return describeLab(d.Stdout, l.Record)
		},
	}
	c.Flags().StringVar(&name, "name", "", "name of the lab (default: the scenario's)")
	return c
}

// findScenario takes a built-in scenario, a row of an experiment written EXPERIMENT/ROW, or a file.
func findScenario(ctx context.Context, arg string) (*scenario.Scenario, error) {
	if name, row, ok := strings.Cut(arg, "/"); ok && slices.Contains(experiment.Names(), name) {
		e, err := experiment.Find(name)
		if err != nil {
			return nil, err
		}
		r := e.Row(row)
		if r == nil {
			return nil, usagef("experiment %q has no row %q", name, row)
		}
		return r.Scenario, nil
	}
	if !strings.ContainsAny(arg, "./") {
		s, err := experiment.Scenario(arg)
		return s, asUsage(err)
	}
	s, err := interrupt.Do(ctx, func() (*scenario.Scenario, error) { return scenario.Load(arg) })
	return s, asUsage(err)
}

// asUsage makes faults of what the user wrote end the program with ExitUsage.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	var faults spec.Faults
	if errors.As(err, &faults) || errors.Is(err, os.ErrNotExist) || errors.Is(err, experiment.ErrUnknown) {
		return &UsageError{Err: err}
	}
	return err
}

// untilHangup ends with the terminal too: a closed window must not leave half a lab behind. Under nohup it does not.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// interrupted says what a person who has pressed Ctrl-C wants to know; any other error stays as it is.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) || errors.Is(err, lab.ErrLeft) {
		return err
	}
	return errors.New("interrupted; everything that was made is removed again")
}

// needRoot explains a missing privilege before anything is begun.
func needRoot(what string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("to %s takes root: it makes network namespaces and loads programs into the kernel; run it with sudo", what)
	}
	return nil
}

// describeLab says what there is now and how to get at it.
func describeLab(w io.Writer, r *lab.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "lab %s is up:\n", r.Name)
	for _, n := range r.Nodes {
		fmt.Fprintf(&b, "  %-7s %-12s %s\n", n.Kind, n.Name, strings.Join(n.Addresses, " "))
	}
	fmt.Fprintf(&b, "enter a node:   heddle lab exec %s NODE\n", r.Name)
	for _, n := range r.Nodes {
		if n.Agent {
			fmt.Fprintf(&b, "ask an agent:   heddle port list --run-dir %s --agent %s\n", r.AgentRunDir(), n.Name)
			break
		}
	}
	fmt.Fprintf(&b, "remove the lab: heddle lab down %s\n", r.Name)
	_, err := io.WriteString(w, b.String())
	return err
}

func newLabDown(d Deps, runDir *string) *cobra.Command {
	return &cobra.Command{
		Use:     "down NAME",
		Short:   "Remove a lab, also one that was left half-built",
		Example: "  heddle lab down nested-mac-learning",
		Args:    exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			err := lab.Down(c.Context(), *runDir, args[0])
			if errors.Is(err, lab.ErrUnknown) {
				return &UsageError{Err: err}
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(d.Stdout, "lab %s is gone\n", args[0])
			return err
		},
	}
}

// newLabGuest is the process that keeps one QEMU guest of a lab; labs start it, people do not.
func newLabGuest() *cobra.Command {
	return &cobra.Command{
		Use:    "guest SPEC",
		Hidden: true,
		Args:   exactly("SPEC"),
		RunE: func(c *cobra.Command, args []string) error {
			var g lab.GuestSpec
			if err := json.Unmarshal([]byte(args[0]), &g); err != nil {
				return usagef("unreadable guest: %v", err)
			}
			err := lab.KeepGuest(c.Context(), g)
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		},
	}
}
