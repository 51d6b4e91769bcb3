package benchcmd

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/lab/bench/controlplane"
	"heddle/internal/lab/cmd"
	"heddle/internal/lab/report"
)

func newBenchControlPlane(d cli.Deps) *cobra.Command {
	var flags reportFlags
	var quick, agent bool
	rest := controlplane.LeastRest
	var program string
	opts := controlplane.Options{Now: time.Now}
	opts.Default()
	c := &cobra.Command{
		Use:   "control-plane",
		Short: "Measure a controller with many simulated hosts",
		Long: "Starts a controller and lets simulated hosts join it, each with the client of a real " +
			"agent, but with no kernel and no disk. Then it measures how long all hosts take to have " +
			"a change, how long the controller takes to start and the hosts to reconnect after it " +
			"was killed, and what CPU time and memory that takes. Everything is on this machine, in " +
			"a directory that is removed afterwards. Many hosts take many open files: see ulimit -n." +
			"\n\nWith --migrate VMs move between the hosts instead, and it is measured how long the controller " +
			"takes to know where they are. With --together all hosts make each change at one instant, with --stages " +
			"in three stages. With --history a history of changes is made and looked at. With " +
			"--locations so many MACs are behind the hosts' ports in overlay segments, and " +
			"it is measured how long it takes until all hosts of a segment of 1,000 hosts know a new one. With " +
			"--database static ports are connected for ten minutes, and it is measured how etcd's database grows." +
			"\n\nWith --agent it measures the memory and the CPU time of one real agent with 1,000 ports on devices " +
			"below a controller instead: while ports connect, the definition changes, the controller and the agent " +
			"are killed, and nothing happens. That needs root.",
		Example: "  heddle bench control-plane\n  heddle bench control-plane --hosts 100,1000,2500,10000 -o json " +
			"--check\n  heddle bench control-plane --migrate\n  heddle bench control-plane --database\n  " +
			"heddle bench control-plane --hosts 2500 --stages --rounds 5\n  heddle bench " +
			"control-plane --history 100000\n  heddle bench control-plane --locations 1000000\n  " +
			"heddle bench control-plane --agent",
		Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if (opts.Migrate || opts.Database) && !c.Flags().Changed("hosts") {
				opts.Hosts = []int{1000}
			}
			if opts.Locations > 0 && !c.Flags().Changed("hosts") {
				opts.Hosts = []int{1000}
			}
			if opts.History > 0 && !c.Flags().Changed("hosts") {
				opts.Hosts = []int{1}
			}
			if opts.Database && !c.Flags().Changed("connecting") {
				opts.Connecting = controlplane.TenMinutes
			}
			if quick {
				quickenControlPlane(c, &opts)
			}
			return flags.measure(c, d, func(ctx context.Context, progress func(done, total int, what string)) (
				*report.Report, error) {
				if agent {
					return cmd.BenchAgent(ctx, agentOptions(c, opts, rest, progress), program)
				}
				opts.Progress = progress
				return cmd.BenchControlPlane(ctx, opts, program)
			})
		},
	}
	flags.add(c)
	f := c.Flags()
	f.IntSliceVar(&opts.Hosts, "hosts", opts.Hosts, "`numbers` of hosts to measure")
	f.IntVar(&opts.Ports, "ports", opts.Ports, "how many ports each host reports")
	f.IntVar(&opts.Rounds, "rounds", opts.Rounds, "how often each change is made")
	f.DurationVar(&opts.Idle, "idle", opts.Idle, "how long CPU time is measured while nothing happens; 0: not at all")
	f.IntVar(&opts.Connects, "connects", opts.Connects, "how many ports are connected a second; 0: none")
	f.DurationVar(&opts.Connecting, "connecting", opts.Connecting, "how long ports are connected: static ones, and "+
		"then ephemeral ones")
	f.BoolVar(&opts.Database, "database", false, "measure how etcd's database grows while static ports are "+
		"connected (default 10m, 1000 hosts), nothing else")
	f.BoolVar(&opts.Together, "together", false, "measure changes that hosts make at one instant, nothing else")
	f.BoolVar(&opts.Stages, "stages", false, "measure changes that hosts make in three stages, nothing else")
	f.IntVar(&opts.History, "history", 0, "measure a history of so many `changes` (default 1 host), nothing else")
	f.IntVar(&opts.Locations, "locations", 0, "measure so many `MACs` in overlay segments (default 1000 hosts), "+
		"nothing else")
	f.BoolVar(&opts.Migrate, "migrate", false, "measure moves of VMs between hosts (default 1000 hosts), nothing else")
	f.IntVar(&opts.Moves, "moves", opts.Moves, "how many moves a second, with --migrate")
	f.DurationVar(&opts.Moving, "moving", opts.Moving, "how long VMs move, with --migrate")
	f.BoolVar(&agent, "agent", false, "measure the memory of a real agent (default 1000 ports), nothing else")
	f.DurationVar(&rest, "rest", rest, "how long an agent is watched while nothing happens, with --agent")
	f.StringVar(&program, "controller-program", "", "`path` of the controller (default: heddle-controller beside this "+
		"program)")
	f.BoolVar(&quick, "quick", false, "take a few seconds: 100 hosts and few rounds")
	return c
}

// quickenControlPlane shortens the run, unless the command line sets its size.
func quickenControlPlane(c *cobra.Command, opts *controlplane.Options) {
	if !c.Flags().Changed("hosts") {
		opts.Hosts = []int{100}
		opts.Locations = min(opts.Locations, 10_000)
	}
	if !c.Flags().Changed("rounds") {
		opts.Rounds = 3
	}
	if !c.Flags().Changed("idle") {
		opts.Idle = 2 * time.Second
	}
	if !c.Flags().Changed("connecting") {
		opts.Connecting = 2 * time.Second
	}
	if !c.Flags().Changed("moving") {
		opts.Moving = 2 * time.Second
	}
}

// agentOptions are those for one real agent.
func agentOptions(c *cobra.Command, o controlplane.Options, rest time.Duration,
	progress func(done, total int, what string)) controlplane.AgentOptions {
	a := controlplane.AgentOptions{Ports: o.Ports, Rounds: o.Rounds, Rest: rest, Calm: controlplane.UsualCalm,
		Progress: progress, Now: o.Now}
	if !c.Flags().Changed("ports") {
		a.Ports = 1000
	}
	return a
}
