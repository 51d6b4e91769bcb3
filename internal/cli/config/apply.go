package config

import (
	"context"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
)

func NewApply(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	var file string
	var dry bool
	var nothing onNothing
	var window api.Window
	c := &cobra.Command{
		Use: "apply -f FILE", Args: cli.Exactly(), Short: "Apply a configuration file (all or nothing)",
		Long: "Apply a configuration file (all or nothing) and print what changed. What the file declares, apply " +
			"adds, changes and removes; ports connected by command are never touched. The agent keeps the file's " +
			"content and applies it again after a restart. A file that declares no switch removes them all: on a " +
			"terminal apply asks first, elsewhere it needs --yes.\n\n" +
			"Lines with +, - and ~ show what is added, removed and changed in the file; lines with => show what " +
			"that means for ports. Settings that commands have made on ports of the file, such as another port " +
			"group, stay, and apply lists them.\n\n" +
			"A change that affects the way to this host's own addresses is tried first: gateways, TCP connections " +
			"and neighbours that answered before the change are asked again after it. If they do not answer " +
			"within 30 seconds, everything goes back. Where there is nobody to ask, --confirm-within is needed, " +
			"and \"heddle confirm\".",
		Example: "  heddle apply -f heddle.yaml --dry-run\n  heddle apply -f heddle.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			b, err := cli.ReadFile(c.Context(), d, file)
			if err != nil {
				return err
			}
			if spec.TooLarge(b) { // the agent need not see it to refuse it
				_, err := spec.Parse(cli.FileName(file), b)
				return err
			}
			q := api.Apply{File: absolute(file), Content: string(b), DryRun: dry, ReadAt: cli.ReadAt(), Window: window}
			if err := nothing.confirm(d, c, t, q); err != nil {
				return err
			}
			out, err := cli.AskTried(d, c, t, window, func(ctx context.Context, s api.Service) (*api.Applied, error) {
				return s.Apply(ctx, q)
			})
			if err != nil {
				// Report the faults under the file name that the user gave, also without an agent.
				if _, faults := spec.Parse(cli.FileName(file), b); faults != nil {
					return faults
				}
				return o.PrintReverted(d, err)
			}
			cli.PrintWarnings(d, out)
			cli.PrintTrial(d, out.Trial)
			return o.Print(d, out, func(w io.Writer) error { return cli.PrintChanges(d, w, out) })
		},
	}
	cli.FileFlag(c, &file)
	c.Flags().BoolVar(&dry, "dry-run", false, "only print what would change")
	nothing.flags(c)
	cli.WindowFlag(c, &window)
	o.Flag(c)
	t.Flags(d, c)
	return c
}

// absolute is a file's name wherever it is read from later; <stdin> for standard input.
func absolute(file string) string {
	if abs, err := filepath.Abs(file); err == nil && file != "-" {
		return abs
	}
	return cli.FileName(file)
}
