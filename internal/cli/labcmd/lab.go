package labcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/lab"
	"heddle/internal/lab/adapters"
	"heddle/internal/lab/cmd"
	"heddle/internal/lab/multiqueue"
)

// New returns the command group of labs: hosts, VMs and a physical network on this machine, and the experiments in
// them.
func New(d cli.Deps) *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Build hosts, VMs and a physical network here, and run experiments",
		Long: "A lab is a set of hypervisors, virtual machines, physical switches and routers made of network " +
			"namespaces on this machine, described by one scenario file. Every host runs the real agent.",
		Example: "  heddle lab list\n  heddle lab run nested-mac-learning",
		Args:    cli.NoSubcommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	runDir := c.PersistentFlags().String("run-dir", d.Env("HEDDLE_RUN_DIR", cli.DefaultRunDir),
		"directory for labs and their agents (environment HEDDLE_RUN_DIR)")
	c.AddCommand(
		newLabUp(d, runDir), newLabDown(d, runDir), newLabList(d, runDir), newLabRun(d, runDir), newLabExec(d, runDir),
		newLabCheck(d), newLabGuest(), newLabAdapter(), newLabOffloads(d), newLabQueues(d),
	)
	return c
}

func newLabUp(d cli.Deps, runDir *string) *cobra.Command {
	name, o := "", &cli.Output{}
	c := &cobra.Command{
		Use:   "up SCENARIO",
		Short: "Build a lab and leave it running",
		Long: "Builds the lab of a built-in scenario, of a row of an experiment (EXPERIMENT/ROW) or of a scenario " +
			"file, waits until everything in it is ready, and leaves it running. \"heddle lab list\" shows the " +
			"scenarios and experiments.",
		Example: "  heddle lab up nested-mac-learning\n  heddle lab up nested-mac-learning/promiscuous-dual\n  " +
			"heddle lab up ./mylab.yaml --name mine",
		Args: cli.Exactly("SCENARIO"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			p := cli.NewProgress(d.Stderr)
			r, err := cmd.Up(c.Context(), args[0], lab.Options{Name: name, RunDir: *runDir, Progress: p.Say})
			p.Clear()
			if err != nil {
				return err
			}
			return o.Print(d, r, func(w io.Writer) error { return describeLab(w, r) })
		},
	}
	o.Flag(c)
	c.Flags().StringVar(&name, "name", "", "name of the lab (default: the scenario's)")
	return c
}

// describeLab prints which nodes exist and how to use them.
func describeLab(w io.Writer, r *lab.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "lab %s is up:\n", r.Name)
	for _, n := range r.Nodes {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("  %-10s %-12s %s", n.Kind, n.Name,
			strings.Join(n.Addresses, " ")), " "))
	}
	fmt.Fprintf(&b, "enter a node:   heddle lab exec %s NODE\n", r.Name)
	for _, n := range r.Nodes {
		if n.Agent {
			fmt.Fprintf(&b, "ask an agent:   heddle lab exec %s %s heddle port list\n", r.Name, n.Name)
			break
		}
	}
	for _, n := range r.Nodes {
		if n.Kind == lab.NodeController {
			fmt.Fprintf(&b, "ask a controller: heddle lab exec %s %s heddle host list\n", r.Name, n.Name)
			break
		}
	}
	fmt.Fprintf(&b, "remove the lab: heddle lab down %s\n", r.Name)
	_, err := io.WriteString(w, b.String())
	return err
}

func newLabDown(d cli.Deps, runDir *string) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use:     "down NAME",
		Short:   "Remove a lab, also one that was left half-built",
		Example: "  heddle lab down nested-mac-learning",
		Args:    cli.Exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if err := cmd.Down(c.Context(), *runDir, args[0]); err != nil {
				return err
			}
			return o.Print(d, RemovedLab{args[0]}, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "lab %s is gone\n", args[0])
				return err
			})
		},
	}
	o.Flag(c)
	return c
}

// RemovedLab is the result of "heddle lab down".
type RemovedLab struct {
	Name string `json:"name"`
}

// newLabGuest returns the process that runs one QEMU guest of a lab; labs start it, and not people.
func newLabGuest() *cobra.Command {
	return &cobra.Command{
		Use:    "guest SPEC",
		Hidden: true,
		Args:   cli.Exactly("SPEC"),
		RunE:   func(c *cobra.Command, args []string) error { return cmd.KeepGuest(c.Context(), args[0]) },
	}
}

// newLabAdapter returns the process that carries the frames of one adapter with queues; labs start it, and not people.
func newLabAdapter() *cobra.Command {
	return &cobra.Command{
		Use:    "adapter SPEC",
		Hidden: true,
		Args:   cli.Exactly("SPEC"),
		RunE:   func(c *cobra.Command, args []string) error { return cmd.KeepAdapter(c.Context(), args[0]) },
	}
}

// newLabQueues runs in a guest of a benchmark: it prints how many packets its adapter's driver has counted by queue.
func newLabQueues(d cli.Deps) *cobra.Command {
	return &cobra.Command{
		Use:    "queues DEVICE",
		Hidden: true,
		Args:   cli.Exactly("DEVICE"),
		RunE: func(_ *cobra.Command, args []string) error {
			counts, err := multiqueue.CountsOf(args[0])
			if err != nil {
				return err
			}
			return json.NewEncoder(d.Stdout).Encode(counts)
		},
	}
}

// newLabOffloads runs in a guest of an experiment: it turns an adapter's offloads on or off and prints those that stay
// on.
func newLabOffloads(d cli.Deps) *cobra.Command {
	return &cobra.Command{
		Use:    "offloads DEVICE on|off",
		Hidden: true,
		Args:   cli.Exactly("DEVICE", "on|off"),
		RunE: func(_ *cobra.Command, args []string) error {
			if args[1] != "on" && args[1] != "off" {
				return cli.Usagef("offloads are %q: say on or off", args[1])
			}
			fixed, err := adapters.SetOffloads(args[0], args[1] == "on")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(d.Stdout, strings.Join(fixed, " "))
			return err
		},
	}
}
