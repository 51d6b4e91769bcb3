package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// mostCompleted is how many names a completion offers.
const mostCompleted = 1000

// Source returns the names that an argument or flag of a command can have; args are the arguments before it.
type Source func(c *cobra.Command, args []string) []string

// Offered returns the names of a source that begin with the text typed so far, sorted.
func Offered(c *cobra.Command, args []string, begin string, names Source) ([]string, cobra.ShellCompDirective) {
	if names == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all := slices.DeleteFunc(names(c, args), func(name string) bool {
		return name == "" || !strings.HasPrefix(name, begin)
	})
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), mostCompleted)], cobra.ShellCompDirectiveNoFileComp
}

// Words returns a source of fixed words.
func Words(list ...string) Source {
	return func(*cobra.Command, []string) []string { return slices.Clone(list) }
}

// FlagText returns a flag's value, or its default.
func FlagText(c *cobra.Command, name string) string {
	if f := c.Flag(name); f != nil {
		return f.Value.String()
	}
	return ""
}

// CompleteWords completes a flag's value to one of a few words.
func CompleteWords(c *cobra.Command, flag string, list []string) {
	_ = c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return list, cobra.ShellCompDirectiveNoFileComp
	})
}
