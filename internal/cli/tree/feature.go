package tree

import (
	"github.com/spf13/cobra"

	"heddle/internal/agent/part"
	"heddle/internal/cli"
)

// Feature is what a feature adds to the program: a part in the agent, commands, or both.
type Feature struct {
	// Host is the part in the agent, without New for none.
	Host part.Feature
	// Commands are commands right below the program; nil for none.
	Commands func(cli.Deps) []*cobra.Command
}

// Commands makes a list of constructors of commands one.
func Commands(all ...func(cli.Deps) *cobra.Command) func(cli.Deps) []*cobra.Command {
	return func(d cli.Deps) (list []*cobra.Command) {
		for _, one := range all {
			list = append(list, one(d))
		}
		return list
	}
}

// hostsOf are the parts that features have in the agent.
func hostsOf(list []Feature) (hosts []part.Feature) {
	for _, f := range list {
		if f.Host.New != nil {
			hosts = append(hosts, f.Host)
		}
	}
	return hosts
}

// addCommands adds the commands of features to the program's.
func addCommands(root *cobra.Command, d cli.Deps, list []Feature) {
	for _, f := range list {
		if f.Commands != nil {
			root.AddCommand(f.Commands(d)...)
		}
	}
}
