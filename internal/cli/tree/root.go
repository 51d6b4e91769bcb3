package tree

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/access"
	"heddle/internal/cli/agentcmd"
	"heddle/internal/cli/benchcmd"
	"heddle/internal/cli/capture"
	"heddle/internal/cli/config"
	"heddle/internal/cli/definition"
	"heddle/internal/cli/diagnose"
	"heddle/internal/cli/events"
	"heddle/internal/cli/flows"
	"heddle/internal/cli/hooks"
	"heddle/internal/cli/hostport"
	"heddle/internal/cli/hosts"
	"heddle/internal/cli/labcmd"
	"heddle/internal/cli/network"
	"heddle/internal/cli/port"
	"heddle/internal/cli/stats"
	"heddle/internal/cli/topcmd"
	"heddle/internal/cli/trace"
	"heddle/internal/version"
)

// NewRoot returns the program's command tree. Every noun and verb is one AddCommand, with a constructor in a file of
// its own.
func NewRoot(d cli.Deps, features ...Feature) *cobra.Command {
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
		Args:          cli.NoSubcommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(d.Stdin)
	root.SetOut(d.Stdout)
	root.SetErr(d.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		var unknown *pflag.NotExistError
		if errors.As(err, &unknown) && slices.Contains([]string{"controller", "context", "host"},
			unknown.GetSpecifiedName()) {
			return cli.Usagef("--%s: %q is for the agent of one host, and does not go by way of a controller: run "+
				"it on "+
				"that host", unknown.GetSpecifiedName(), c.CommandPath())
		}
		return cli.Usagef("%w (see \"%s --help\")", err, c.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(agentcmd.New(d, hostsOf(features)), config.NewApply(d), config.NewCheck(d), agentcmd.NewDown(d),
		events.New(d), port.NewMAC(d), port.New(d),
		network.NewPortGroup(d), port.NewShow(d),
		stats.New(d), network.NewSwitch(d), network.NewUplink(d), newVersion(d))
	root.AddCommand(network.NewLAG(d))
	root.AddCommand(config.NewConfig(d))
	root.AddCommand(diagnose.NewStatus(d))
	root.AddCommand(trace.New(d))
	root.AddCommand(diagnose.NewAdvise(d))
	root.AddCommand(trace.NewExplain(d))
	root.AddCommand(capture.New(d))
	root.AddCommand(diagnose.NewDoctor(d))
	root.AddCommand(agentcmd.NewMetrics(d))
	root.AddCommand(topcmd.New(d))
	root.AddCommand(flows.New(d))
	root.AddCommand(hostport.New(d))
	root.AddCommand(hosts.New(d), definition.New(d), definition.NewRollout(d), network.NewSegment(d),
		definition.NewBackup(d), definition.NewImport(d), definition.NewExport(d))
	root.AddCommand(access.New(d), access.NewAudit(d), access.NewCA(d), access.NewContext(d), access.NewLogin(d),
		access.NewLogout(d))
	root.AddCommand(hostport.NewConfirm(d))
	root.AddCommand(hooks.NewCNI(d), hooks.NewLibvirtHook(d), hooks.NewIncusFollow(d))
	root.AddCommand(benchcmd.NewTraffic(), benchcmd.New(d), labcmd.New(d))
	addCommands(root, d, features)
	finish(root)
	wrapHelp(root, d.Width)
	return root
}

// finish gives all commands their common properties.
func finish(root *cobra.Command) {
	helpGroups(root)
	cli.Spellings(root)
	cli.EveryCommand(root, func(c *cobra.Command) {
		completeLine(c)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) { // once, because collecting and sorting them takes time
			cli.TakeSeconds(f)
			completeValue(c, f)
		})
	})
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
}

// Run runs the program and returns its exit status; it has written errors to Stderr.
func Run(ctx context.Context, d cli.Deps, args []string, features ...Feature) int {
	d = d.Printing()
	root := NewRoot(d, features...)
	root.SetArgs(args)
	if d.Waits != nil {
		ctx = api.WithWaits(ctx, d.Waits)
	}
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return cli.ExitOK
	}
	err = withoutAgent(called, err)
	cli.PrintError(d, err)
	return cli.ExitStatus(err)
}
