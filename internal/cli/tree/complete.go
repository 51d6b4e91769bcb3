package tree

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"heddle/internal/agent/instance"
	"heddle/internal/api"
	"heddle/internal/cli"
)

// completeWithin is how long the completion of a word waits for the agent.
const completeWithin = 2 * time.Second

// argumentWords are the words in capitals of a command's use line: PORT, PORT-GROUP.
var argumentWords = regexp.MustCompile(`[A-Z][A-Z-]+`)

// flagInUse is a flag with its value in a use line, which is not an argument: -f FILE.
var flagInUse = regexp.MustCompile(`-\w+ [A-Z][A-Z-]+`)

// completeLine sets the completion of a command's arguments, unless the command has set one itself.
func completeLine(c *cobra.Command) {
	_, use, _ := strings.Cut(c.Use, " ")
	words := argumentWords.FindAllString(flagInUse.ReplaceAllString(use, ""), -1)
	if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && len(words) > 0 && !c.HasSubCommands() {
		c.ValidArgsFunction = completeArguments(c, words)
	}
}

// completeValue sets the completion of a flag, unless the command has set one itself.
func completeValue(c *cobra.Command, f *pflag.Flag) {
	if _, done := c.GetFlagCompletionFunc(f.Name); done || f.Annotations[cobra.BashCompFilenameExt] != nil {
		return
	}
	if complete := flagCompletion(c, f); complete != nil {
		_ = c.RegisterFlagCompletionFunc(f.Name, complete)
	}
}

// completeArguments completes the arguments that a use line names; the last one repeats.
func completeArguments(c *cobra.Command, words []string) cobra.CompletionFunc {
	path := c.CommandPath()
	repeated := strings.Contains(c.Use, "…")
	return func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		n := len(args)
		if n >= len(words) && !repeated {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word := words[min(n, len(words)-1)]
		if isFileArgument(path, word) {
			list, _ := cli.Offered(c, args, toComplete, argumentSource(path, word))
			return list, cobra.ShellCompDirectiveDefault
		}
		return cli.Offered(c, args, toComplete, argumentSource(path, word))
	}
}

// flagCompletion returns the completion of a flag's value; nil if its values are not known.
func flagCompletion(c *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	switch {
	case isDirectoryFlag(f.Name):
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}
	case isFileFlag(f.Name):
		return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	names := flagSource(c.CommandPath(), f.Name)
	if names == nil {
		return nil
	}
	list := strings.HasSuffix(f.Value.Type(), "Slice")
	return func(c *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if !list {
			return cli.Offered(c, args, toComplete, names)
		}
		i := strings.LastIndexByte(toComplete, ',') + 1 // the text before the last comma is complete
		given := strings.Split(toComplete[:i], ",")
		out, directive := cli.Offered(c, args, toComplete[i:], func(c *cobra.Command, args []string) []string {
			return slices.DeleteFunc(names(c, args), func(name string) bool { return slices.Contains(given, name) })
		})
		for k := range out {
			out[k] = toComplete[:i] + out[k]
		}
		return out, directive
	}
}

// both returns the names of several sources.
func both(sources ...cli.Source) cli.Source {
	return func(c *cobra.Command, args []string) (all []string) {
		for _, s := range sources {
			all = append(all, s(c, args)...)
		}
		return all
	}
}

// asked asks the agent to which the command would talk. If none answers in time, nothing is offered.
func asked[T any](c *cobra.Command, f func(context.Context, api.Service) (T, error)) (answer T, ok bool) {
	name, run := cli.FlagText(c, "agent"), cli.FlagText(c, "run-dir")
	if instance.CheckName(name) != nil {
		return answer, false
	}
	ctx := c.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	var client api.Service = api.NewClient(api.SocketPath(run, name))
	if host, fleet := askedHost(ctx, c); fleet != nil {
		client = fleet.Host(host)
	}
	answer, err := f(ctx, client)
	return answer, err == nil
}

// askedHost returns the host that the command would ask by way of a controller: of all hosts the first one that is
// connected, as most names are the same everywhere. There is no controller where this machine's agent is asked.
func askedHost(ctx context.Context, c *cobra.Command) (string, *api.Fleet) {
	if c.Flags().Lookup("host") == nil || c.Flags().Lookup("controller") == nil {
		return "", nil
	}
	t := &cli.Target{Set: c.Flags(), Controller: cli.FlagText(c, "controller"), Host: cli.FlagText(c, "host")}
	fleet, err := t.Fleet()
	if err != nil || fleet == nil || t.Host != "" {
		return t.Host, fleet
	}
	list, err := fleet.Hosts(ctx)
	if err != nil {
		return "", fleet
	}
	i := slices.IndexFunc(list.Hosts, func(h api.FleetHost) bool { return h.State != api.HostDisconnected })
	if i < 0 {
		return "", fleet
	}
	return list.Hosts[i].Name, fleet
}

// inState returns a source of names in what is active. Objects of another switch than --switch says are left out.
func inState(names func(s *api.State, of func(sw string) bool) []string) cli.Source {
	return func(c *cobra.Command, _ []string) []string {
		s, ok := asked(c, func(ctx context.Context, s api.Service) (*api.State, error) { return s.State(ctx) })
		if !ok {
			return nil
		}
		sw := ""
		if f := c.Flags().Lookup("switch"); f != nil {
			sw = f.Value.String()
		}
		return names(s, func(name string) bool { return sw == "" || sw == name })
	}
}
