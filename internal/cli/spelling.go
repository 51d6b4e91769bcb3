package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// portGroup is how port groups are spelt on the command line; spellings also reads the others.
const portGroup = "port-group"

// spelt returns the one spelling of a word that people write in several ways.
func spelt(word string) string {
	switch word {
	case "portgroup", "pg":
		return portGroup
	}
	return word
}

// also returns the other names of commands, by the name of the command: the plurals of nouns, and what other tools call
// the verbs.
func also(name string) []string {
	switch name {
	case portGroup:
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

// removes returns the words of other tools for taking something away.
func removes() []string { return []string{"rm", "delete", "remove"} }

// spellings gives commands their other names, and flags theirs.
func spellings(root *cobra.Command) {
	everyCommand(root, func(c *cobra.Command) {
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
		if name == "segment" { // of capture, in its first versions
			name = "vlan"
		}
		return pflag.NormalizedName(spelt(name))
	})
}

// taken reports whether a command beside c has the name itself.
func taken(c *cobra.Command, name string) bool {
	return c.Parent() != nil && slices.ContainsFunc(c.Parent().Commands(), func(other *cobra.Command) bool {
		return other.Name() == name
	})
}

// everyCommand visits c and all commands below it.
func everyCommand(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, visit)
	}
}
