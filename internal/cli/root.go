package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heddle/internal/api"
	"heddle/internal/api/waitline"
	"heddle/internal/spec/printable"
	"heddle/internal/version"
)

// Exit statuses of the program.
const (
	ExitOK      = 0
	ExitFailure = 1 // something went wrong while running
	ExitUsage   = 2 // the command line or the configuration is wrong; nothing was changed
	// Exit statuses of an agent under a service manager, which should not start it again: a command stopped it, or the
	// configuration is wrong. A crash of the Go runtime has status 2, which is why the latter has another one here
	// (EX_CONFIG of sysexits.h).
	ExitStopped = 3
	ExitConfig  = 78
	// "heddle down" was refused, or would be: it ends somebody's connection to this host.
	ExitConnected = 4
)

// Deps is what commands get from outside, so that tests can replace it.
type Deps struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Getenv looks up an environment variable.
	Getenv func(string) string
	// Colour: Stdout is a terminal on which colours may be used.
	Colour bool
	// Asking: Stdin and Stderr are a terminal, where a person can be asked.
	Asking bool
	// Watched: Stderr is a terminal, on which a line may be overwritten.
	Watched bool
	// Width is the width of the terminal on Stdout, in characters; 0 if Stdout is not a terminal.
	Width int

	// Release is the version of the package that the program is part of; empty in other builds.
	Release string

	// raw is Stdout for output that is not text: binary files, full screens, the programs that a command runs. rawErr
	// is Stderr for the latter.
	raw, rawErr io.Writer
	// waits shows who is waited for; nil where nobody watches.
	waits *waitline.Line
	// mark distinguishes the program's own colours from control sequences in names from outside.
	mark string
}

// printing returns Deps whose Stdout removes control and direction characters that come from outside. On a terminal,
// output takes the place of the line that says who is waited for.
func (d Deps) printing() Deps {
	d.raw, d.rawErr, d.mark = d.Stdout, d.Stderr, rand.Text()
	out := d.raw
	if d.Watched {
		d.waits = waitline.New(d.rawErr)
		out, d.Stderr = d.waits.Before(out), d.waits.Before(d.rawErr)
	}
	d.Stdout = screen{printable.NewWriter(out, d.mark), d.Width}
	return d
}

// FromOS returns the process's own streams and environment.
func FromOS() Deps {
	return Deps{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv:  os.Getenv,
		Colour:  isTerminal(os.Stdout) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Asking:  isTerminal(os.Stdin) && isTerminal(os.Stderr),
		Watched: isTerminal(os.Stderr) && os.Getenv("TERM") != "dumb",
		Width:   terminalWidth(os.Stdout),
	}
}

// UsageError is a fault of the command line or of a configuration: the program exits with ExitUsage.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// NewRoot returns the program's command tree. Every noun and verb is one AddCommand, with a constructor in a file of
// its own.
func NewRoot(d Deps) *cobra.Command {
	root := &cobra.Command{
		Use:   "heddle",
		Short: "A distributed virtual switch for Linux hypervisors",
		Long: "Heddle is a distributed virtual switch for Linux hypervisors: switches, port groups and policies as\n" +
			"vSphere knows them, running in the Linux kernel as eBPF.\n\n" +
			"The documentation is in docs/ of the source, and in /usr/share/doc/heddle/docs/ of the package.",
		Example: "  heddle doctor\n  heddle check -f heddle.yaml\n  heddle agent --config heddle.yaml\n  " +
			"heddle port list",
		Version:       version.Of(d.Release).Version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noSubcommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(d.Stdin)
	root.SetOut(d.Stdout)
	root.SetErr(d.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && slices.Contains([]string{"controller", "context", "host"},
			unknown.GetSpecifiedName()) {
			return usagef("--%s: %q is for the agent of one host, and does not go by way of a controller: run it on "+
				"that host", unknown.GetSpecifiedName(), c.CommandPath())
		}
		return usagef("%w (see \"%s --help\")", err, c.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(newAgent(d), newApply(d), newCheck(d), newDown(d), newEvents(d), newMAC(d), newPort(d),
		newPortGroup(d), newShow(d),
		newStats(d), newSwitch(d), newUplink(d), newVersion(d))
	root.AddCommand(newLAG(d))
	root.AddCommand(newConfig(d))
	root.AddCommand(newStatus(d))
	root.AddCommand(newTrace(d))
	root.AddCommand(newAdvise(d))
	root.AddCommand(newExplain(d))
	root.AddCommand(newCapture(d))
	root.AddCommand(newDoctor(d), newHealth(d))
	root.AddCommand(newMetrics(d))
	root.AddCommand(newTop(d))
	root.AddCommand(newFlows(d))
	root.AddCommand(newHostPort(d))
	root.AddCommand(newHost(d), newDefinition(d), newRollout(d), newSegment(d), newBackup(d),
		newImport(d), newExport(d))
	root.AddCommand(newAccess(d), newAudit(d), newCA(d), newContext(d), newLogin(d), newLogout(d))
	root.AddCommand(newConfirm(d))
	root.AddCommand(newCNI(d))
	root.AddCommand(newLibvirtHook(d))
	root.AddCommand(newIncusFollow(d))
	root.AddCommand(newTraffic())
	root.AddCommand(newBench(d))
	root.AddCommand(newLab(d))
	finish(root)
	wrapHelp(root, d.Width)
	return root
}

// finish gives all commands their common properties.
func finish(root *cobra.Command) {
	helpGroups(root)
	spellings(root)
	everyCommand(root, func(c *cobra.Command) {
		completeLine(c)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { // once, because collecting and sorting them takes time
			takeSeconds(f)
			completeValue(c, f)
		})
	})
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
}

// Run runs the program and returns its exit status; it has written errors to Stderr.
func Run(ctx context.Context, d Deps, args []string) int {
	d = d.printing()
	root := NewRoot(d)
	root.SetArgs(args)
	if d.waits != nil {
		ctx = api.WithWaits(ctx, d.waits)
	}
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	err = withoutAgent(called, err)
	printError(d, err)
	return exitStatus(err)
}
