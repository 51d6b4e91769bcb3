package config

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

func NewConfig(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("config", "Read, compare and bring back applied configurations",
		"  heddle config show\n  heddle config diff\n  heddle config history\n  heddle config rollback")
	c.Long = "Read, compare and bring back applied configurations. The agent numbers each configuration that it " +
		"applies and\n" +
		"keeps the last 50 of them, also over a restart. A configuration is edited in a file: see \"heddle apply\"."
	t.Flags(d, c)
	c.AddCommand(newConfigShow(d, t), newConfigDiff(d, t), newConfigHistory(d, t), newConfigRollback(d, t))
	return c
}

func newConfigShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	running := false
	c := &cobra.Command{
		Use: "show [NUMBER]", Short: "Print the applied configuration, or one of the history, as YAML",
		Long: "Print the applied configuration as it was applied, with its comments, or version NUMBER of the " +
			"history.\n" +
			"With --running: the applied configuration with what commands changed since, such as ports connected by " +
			"a hook.",
		Example: "  heddle config show > heddle.yaml\n  heddle config show 3\n  heddle config show --running",
		Args:    cli.AtMost("NUMBER"), ValidArgsFunction: completeVersions(t),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			q := api.ConfigQuery{Running: running}
			if len(args) == 1 {
				var err error
				if q.Number, err = versionNumber(args[0]); err != nil {
					return err
				}
				if running {
					return cli.Usagef("--running and a version exclude each other: a version is what was applied")
				}
			}
			cfg, err := configOf(t, c, q)
			if err != nil {
				return err
			}
			return o.Print(d, cfg, func(w io.Writer) error {
				_, err := io.WriteString(w, printable.Lines(cfg.Content))
				return err
			})
		},
	}
	c.Flags().BoolVar(&running, "running", false, "add what commands changed since it was applied")
	t = t.Looking(d, c)
	o.Flag(c)
	return c
}

// versionNumber parses a number of the history.
func versionNumber(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, cli.Usagef("%q is no version: give a number of \"heddle config history\"", text)
	}
	return n, nil
}

// config requests a configuration.
func configOf(t *cli.Target, c *cobra.Command, q api.ConfigQuery) (*api.AppliedConfig, error) {
	return cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.AppliedConfig, error) {
		return s.Config(ctx,
			q)
	})
}

// configs requests the history.
func configsOf(t *cli.Target, c *cobra.Command) ([]api.AppliedConfig, error) {
	return cli.Ask(c, t, func(ctx context.Context, s api.Service) ([]api.AppliedConfig, error) {
		return s.Configs(ctx)
	})
}

func newConfigHistory(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use: "history", Aliases: []string{"list", "ls"},
		Short:   "List the configurations that were applied, the newest first",
		Example: "  heddle config history\n  heddle config diff 3 4", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			list, err := configsOf(t, c)
			if err != nil {
				return err
			}
			return o.Print(d, list, func(w io.Writer) error { return printHistory(d, w, list) })
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	return c
}

func printHistory(d cli.Deps, w io.Writer, list []api.AppliedConfig) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no configuration was applied yet")
		return err
	}
	tab := &cli.Table{Head: []string{"VERSION", "APPLIED AT", "BY", "BYTES", ""}, Right: map[int]bool{0: true, 3: true}}
	tab.Paint = func(column int, text, padded string) string {
		if column == len(tab.Head)-1 && text != "" {
			return d.Coloured(cli.Green, padded)
		}
		return padded
	}
	for i := len(list) - 1; i >= 0; i-- {
		v, now := list[i], ""
		if v.Applied {
			now = "applied now"
		}
		tab.Add(strconv.Itoa(v.Number), v.At.Local().Format(time.DateTime), cli.Dash(v.By), strconv.Itoa(v.Size), now)
	}
	if err := tab.Write(w); err != nil || AppliedOf(list) >= 0 {
		return err
	}
	_, err := fmt.Fprintln(w, "the applied configuration is none of these: it could not be added to the history (see "+
		"the agent's log); print it with: heddle config show")
	return err
}

func newConfigRollback(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	var dry bool
	var window api.Window
	c := &cobra.Command{
		Use: "rollback [NUMBER]", Short: "Apply the version before the applied one again, or version NUMBER",
		Long: "Apply an earlier configuration again: the version before the applied one, or version NUMBER of the " +
			"history. Where\n" +
			"the applied one was brought back itself, that is the version before the one that it brought back. It is " +
			"applied as\n" +
			"\"heddle apply\" would: all or nothing, ports connected by command stay, and a change that concerns the " +
			"way to this\n" +
			"host's own addresses is tried first. The file of the configuration is not touched.",
		Example: "  heddle config rollback --dry-run\n  heddle config rollback 3",
		Args:    cli.AtMost("NUMBER"), ValidArgsFunction: completeVersions(t),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			number, err := rollbackTo(t, c, args)
			if err != nil {
				return err
			}
			cfg, err := configOf(t, c, api.ConfigQuery{Number: number})
			if err != nil {
				return err
			}
			q := api.Apply{File: cfg.File, Content: cfg.Content, DryRun: dry, Rollback: number, ReadAt: cli.ReadAt(),
				Window: window}
			out, err := cli.AskTried(d, c, t, window, func(ctx context.Context, s api.Service) (*api.Applied, error) {
				return s.Apply(ctx, q)
			})
			if err != nil {
				return o.PrintReverted(d, err)
			}
			cli.PrintWarnings(d, out)
			cli.PrintTrial(d, out.Trial)
			if !dry {
				hintFile(d, cfg)
			}
			return o.Print(d, out, func(w io.Writer) error { return cli.PrintChanges(d, w, out) })
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only print what would change")
	cli.WindowFlag(c, &window)
	o.Flag(c)
	return c
}

// rollbackTo returns the version to restore: the named one, or the one before the applied one.
func rollbackTo(t *cli.Target, c *cobra.Command, args []string) (int, error) {
	if len(args) == 1 {
		return versionNumber(args[0])
	}
	list, err := configsOf(t, c)
	if err != nil {
		return 0, err
	}
	before := AppliedOf(list)
	if before < 0 { // it could not be added to the history: all versions are older
		before = len(list)
	}
	return versionBefore(list, before)
}

// versionBefore is the number of the version before that one. A version that brought back another one stands for it:
// going back twice goes back two versions, and not forward to what was just taken back.
func versionBefore(list []api.AppliedConfig, at int) (int, error) {
	for at < len(list) && list[at].Restores != 0 {
		of := list[at].Restores
		i := slices.IndexFunc(list[:at], func(c api.AppliedConfig) bool { return c.Number == of })
		if i < 0 {
			return 0, fmt.Errorf("version %d brought back version %d, which the history has no more: say which "+
				"version to go back to (heddle config history)", list[at].Number, of)
		}
		at = i
	}
	if at == 0 {
		return 0, fmt.Errorf("there is no version before the applied one (see \"heddle config history\")")
	}
	return list[at-1].Number, nil
}

// AppliedOf returns the index of the applied version, -1 if the history lacks it.
func AppliedOf(list []api.AppliedConfig) int {
	return slices.IndexFunc(list, func(c api.AppliedConfig) bool { return c.Applied })
}

// hintFile prints a hint if the file differs from the restored version.
func hintFile(d cli.Deps, cfg *api.AppliedConfig) {
	b, err := os.ReadFile(cfg.File)
	if err != nil || string(b) == cfg.Content {
		return
	}
	d.Warn(fmt.Sprintf("%s differs from what is applied now, and counts again when it is edited or reloaded: "+
		"write this version into it with: heddle config show > %s", cfg.File, cfg.File))
}

// completeVersions offers the numbers of the history, each with the command that applied it.
func completeVersions(t *cli.Target) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		list, err := configsOf(t, c)
		if err != nil || len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for i := len(list) - 1; i >= 0; i-- {
			out = append(out, fmt.Sprintf("%d\t%s, %s", list[i].Number, list[i].At.Local().Format(time.DateTime),
				list[i].By))
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
