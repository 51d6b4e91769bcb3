package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// PortGroup is the spelling of port groups on the command line; spellings also accepts the others.
const PortGroup = "port-group"

// Spelt returns the standard spelling of a word that people write in several ways.
func Spelt(word string) string {
	switch word {
	case "portgroup", "pg":
		return PortGroup
	}
	return word
}

// also returns the other names of a command: the plurals of nouns, and the verbs of other tools.
func also(name string) []string {
	switch name {
	case PortGroup:
		return []string{"portgroup", "pg", "port-groups", "portgroups"}
	case "port", "uplink", "mac", "lab", "lag", "host-port":
		return []string{name + "s"}
	case "switch":
		return []string{"switches"}
	case "flows":
		return []string{"flow"}
	case "events":
		return []string{"event"}
	case "restore":
		return []string{"undrain", "unblock"}
	case "list":
		return []string{"ls"}
	case "disconnect":
		return removes()
	}
	return nil
}

// removes returns other tools' verbs for removing.
func removes() []string { return []string{"rm", "delete", "remove"} }

// Spellings gives commands and flags their other names.
func Spellings(root *cobra.Command) {
	EveryCommand(root, func(c *cobra.Command) {
		names := also(c.Name())
		if c.CommandPath() == "heddle lab down" || c.CommandPath() == "heddle host-port release" {
			names = removes()
		}
		for _, name := range names {
			if !slices.Contains(c.Aliases, name) && !taken(c, name) {
				c.Aliases = append(c.Aliases, name)
			}
		}
	})
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "segment" { // the name of the flag of capture in its first versions
			name = "vlan"
		}
		return pflag.NormalizedName(Spelt(name))
	})
}

// taken reports whether a sibling of the command c already has the name.
func taken(c *cobra.Command, name string) bool {
	return c.Parent() != nil && slices.ContainsFunc(c.Parent().Commands(), func(other *cobra.Command) bool {
		return other.Name() == name
	})
}

// EveryCommand visits c and all commands below it.
func EveryCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		EveryCommand(sub, visit)
	}
}
