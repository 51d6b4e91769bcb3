package agentcmd

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"heddle/internal/agent"
	"heddle/internal/agent/part"
	"heddle/internal/agent/supervise"
	"heddle/internal/agent/transport"
	"heddle/internal/cli"
	"heddle/internal/cli/hooks"
	times "heddle/internal/spec/period"
	"heddle/internal/uplinks"
	"heddle/internal/version"
)

// New returns the command that runs the agent, with these features.
func New(d cli.Deps, features []part.Feature) *cobra.Command {
	o := agent.Options{Features: features}
	verbose := false
	c := &cobra.Command{
		Use: "agent", Short: "Run the agent in the foreground",
		Long: "Run the agent of this host, or network namespace, in the foreground. It puts the configuration into " +
			"the kernel, follows the devices and answers commands. It may be stopped, killed and started again at " +
			"any time: the kernel goes on forwarding, and the next start adopts what is there. \"heddle down\" " +
			"removes everything.\n\n" +
			"--config is read at start and on SIGHUP. At start the file is applied if it was edited since it was " +
			"last read; otherwise what \"heddle apply\" applied last stays active. A file without a list of " +
			"switches removes nothing, and one with faults leaves what was applied last.\n\n" +
			"Under a service manager (NOTIFY_SOCKET) the agent reports when it is ready, reloading and stopping, " +
			"and feeds the watchdog. It ends with status 3 when a command stopped it, as \"heddle down\" does, and " +
			"with 78 when the configuration is wrong: in both cases it should not be started again. Other " +
			"supervisors, such as runit, get these statuses with HEDDLE_SUPERVISED=yes.",
		Example: "  heddle agent --config heddle.yaml\n  heddle agent --name host2 --config host2.yaml",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			o.Log = slog.New(supervise.Handler(d.Stderr, d.Getenv, level))
			o.Version = version.Of(d.Release).Version
			load, err := loadOptions(d)
			if err != nil {
				return err
			}
			o.Load = load
			keepHeapSmall(d)
			reload, stop := hangups(c.Context())
			defer stop()
			o.Reload = reload
			o.Plugged = hooks.Plugged(o.Log)
			manager := supervise.New(d.Getenv, o.Log)
			o.Supervisor = manager
			return supervisedEnd(d, manager, agent.Run(c.Context(), o))
		},
	}
	f := c.Flags()
	f.StringVarP(&o.Config, "config", "c", "", "configuration file")
	f.StringVar(&o.Name, "name", d.Env("HEDDLE_AGENT", cli.DefaultAgent),
		"name of this agent; several may run on a machine (environment HEDDLE_AGENT)")
	f.StringVar(&o.Paths.Run, "run-dir", d.Env("HEDDLE_RUN_DIR", cli.DefaultRunDir),
		"directory for sockets, locks and pinned kernel objects")
	f.StringVar(&o.Paths.State, "state-dir", d.Env("HEDDLE_STATE_DIR", cli.DefaultStateDir),
		"directory for what survives a reboot")
	f.BoolVar(&o.AllowUnprotected, "allow-unprotected", false, "start also where this version does not know a\n"+
		"security field that a later one left in the host's definition")
	f.StringVar(&o.LibvirtDir, "libvirt-dir", d.Env("HEDDLE_LIBVIRT_DIR", "/run/libvirt"),
		"directory of libvirt's read-only socket, asked where guests run whose\n"+
			"ports have a domain; empty: never")
	f.StringVar(&o.MoveListen, "move-listen", d.Env("HEDDLE_MOVE_LISTEN", transport.DefaultListen),
		"address where other hosts of the cluster give what belongs to ports that\n"+
			"move here; open only while a port waits for its guest; none: never")
	f.BoolVarP(&verbose, "verbose", "v", false, "log more")
	metricsFlags(d, c, &o.Metrics)
	_ = c.MarkFlagFilename("config", "yaml", "yml")
	return c
}

// agentGCPercent is how much an agent's heap grows, in percent of the live heap, before it is collected. The agent
// allocates little at rest and keeps flows outside the heap: half of Go's default of 100 saves memory on every host,
// and costs no measurable time.
const agentGCPercent = 50

// keepHeapSmall sets the garbage collector for a process that runs beside guests, unless the environment sets it.
func keepHeapSmall(d cli.Deps) {
	if d.Env("GOGC", "") == "" {
		debug.SetGCPercent(agentGCPercent)
	}
}

// supervisedEnd tells a service manager the exit statuses after which it should not start the agent again.
func supervisedEnd(d cli.Deps, manager *supervise.Systemd, err error) error {
	switch {
	case !manager.Present() && d.Env("HEDDLE_SUPERVISED", "") == "":
		return err
	case err == nil && manager.StoppedByOrder():
		return &cli.SilentError{Status: cli.ExitStopped}
	case err != nil && cli.ExitStatus(err) == cli.ExitUsage:
		cli.PrintError(d, err)
		return &cli.SilentError{Status: cli.ExitConfig}
	}
	return err
}

// loadOptions reads the environment variables by which labs change load-based teaming: nobody wants to wait half a
// minute, or to fill 10 Gb/s, to see it work.
func loadOptions(d cli.Deps) (o uplinks.LoadOptions, err error) {
	if text := d.Env("HEDDLE_LOAD_WINDOW", ""); text != "" {
		if o.Window, err = times.Parse(text); err != nil || o.Window <= 0 {
			return o, &cli.UsageError{Err: fmt.Errorf("HEDDLE_LOAD_WINDOW is %q: it is a duration, such as 2s", text)}
		}
	}
	if text := d.Env("HEDDLE_LOAD_SPEED", ""); text != "" {
		if o.Speed, err = strconv.ParseFloat(text, 64); err != nil || o.Speed <= 0 {
			return o, &cli.UsageError{Err: fmt.Errorf("HEDDLE_LOAD_SPEED is %q: it is bits per second, such as 1e8",
				text)}
		}
	}
	return o, nil
}

// hangups turns SIGHUP into messages; several at once become one.
func hangups(ctx context.Context) (<-chan struct{}, func()) {
	sig := make(chan os.Signal, 1)
	out := make(chan struct{}, 1)
	signal.Notify(sig, syscall.SIGHUP)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-sig:
				select {
				case out <- struct{}{}:
				default:
				}
			}
		}
	}()
	return out, func() { signal.Stop(sig) }
}
