package config

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"heddle/internal/agent/changes"
	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec"
)

// ConfigDiff is the difference between two configurations.
type ConfigDiff struct {
	From    string       `json:"from"`
	To      string       `json:"to"`
	Changes []api.Change `json:"changes"`
}

func newConfigDiff(d cli.Deps, t *cli.Target) *cobra.Command {
	o := &cli.Output{}
	running := false
	c := &cobra.Command{
		Use: "diff [FILE|NUMBER [NUMBER]]", Short: "Compare the applied configuration with a file or a version",
		Long: "Compare two configurations field by field. Lines with +, - and ~ show what the second one adds, lacks " +
			"and changes. " +
			"The exit status is 1 when they differ, so that a script can look for drift.\n\n" +
			"  heddle config diff            applied configuration → its file as it is now\n" +
			"  heddle config diff FILE       applied configuration → FILE\n" +
			"  heddle config diff 3          version 3 of the history → applied configuration\n" +
			"  heddle config diff 3 4        version 3 → version 4\n" +
			"  heddle config diff --running  applied configuration → with commands' changes",
		Example: "  heddle config diff\n  heddle config diff new.yaml\n  heddle config diff 3 4",
		Args:    cli.AtMost("FILE|NUMBER", "NUMBER"),
		ValidArgsFunction: func(c *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			list, directive := completeVersions(t)(c, args, word)
			if len(args) == 0 {
				directive = cobra.ShellCompDirectiveDefault // offer files, too
			}
			return list, directive
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			diff, err := diffOf(t, c, args, running)
			if err != nil {
				return err
			}
			err = o.Print(d, diff, func(w io.Writer) error {
				if len(diff.Changes) == 0 {
					_, err := fmt.Fprintf(w, "no difference between %s and %s\n", diff.From, diff.To)
					return err
				}
				if _, err := fmt.Fprintf(w, "from %s\nto   %s\n\n", diff.From, diff.To); err != nil {
					return err
				}
				return cli.PrintChangeLines(d, w, diff.Changes)
			})
			if err == nil && len(diff.Changes) > 0 {
				return &cli.SilentError{Status: cli.ExitFailure}
			}
			return err
		},
	}
	c.Flags().BoolVar(&running, "running", false, "compare with what commands changed since it was applied")
	o.Flag(c)
	return c
}

// named is a configuration with its name in messages.
type named struct {
	name string
	cfg  *spec.Config
}

// configDiff compares the configurations that the arguments of "config diff" name.
func diffOf(t *cli.Target, c *cobra.Command, args []string, running bool) (*ConfigDiff, error) {
	from, to, err := configPair(t, c, args, running)
	if err != nil {
		return nil, err
	}
	list, err := changes.Between(from.cfg, to.cfg)
	return &ConfigDiff{From: from.name, To: to.name, Changes: list}, err
}

func configPair(t *cli.Target, c *cobra.Command, args []string, running bool) (from, to named, err error) {
	if running && len(args) > 0 {
		return from, to, cli.Usagef("--running compares the applied configuration with itself: leave out the file or " +
			"version")
	}
	if len(args) > 0 {
		if _, bad := versionNumber(args[0]); bad == nil && !isRegular(args[0]) {
			return versionPair(t, c, args)
		}
	}
	if len(args) > 1 {
		return from, to, cli.Usagef("a file is compared with the applied configuration alone: leave out %s", args[1])
	}
	if from, err = parsedConfig(t, c, api.ConfigQuery{}); err != nil {
		return from, to, err
	}
	if running {
		to, err = parsedConfig(t, c, api.ConfigQuery{Running: true})
		return from, to, err
	}
	file := ""
	if len(args) == 1 {
		file = args[0]
	} else if file, err = appliedFile(t, c); err != nil {
		return from, to, err
	}
	to, err = parsedFile(c, file)
	return from, to, err
}

// versionPair returns one version and the applied configuration, or two versions.
func versionPair(t *cli.Target, c *cobra.Command, args []string) (from, to named, err error) {
	var q [2]api.ConfigQuery
	for i, a := range args {
		if q[i].Number, err = versionNumber(a); err != nil {
			return from, to, err
		}
	}
	if from, err = parsedConfig(t, c, q[0]); err == nil {
		to, err = parsedConfig(t, c, q[1])
	}
	return from, to, err
}

func isRegular(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular()
}

// appliedFile returns the file that the applied configuration came from.
func appliedFile(t *cli.Target, c *cobra.Command) (string, error) {
	cfg, err := configOf(t, c, api.ConfigQuery{})
	if err != nil {
		return "", err
	}
	if !isRegular(cfg.File) {
		return "", fmt.Errorf("the applied configuration came from %q, which cannot be read again: name a file or a "+
			"version",
			cfg.File)
	}
	return cfg.File, nil
}

func parsedFile(c *cobra.Command, file string) (named, error) {
	b, err := cli.ReadFile(c.Context(), cli.Deps{Stdin: c.InOrStdin()}, file)
	if err != nil {
		return named{}, err
	}
	cfg, err := spec.Parse(cli.FileName(file), b)
	return named{file, cfg}, err
}

// parsedConfig requests a configuration and parses it.
func parsedConfig(t *cli.Target, c *cobra.Command, q api.ConfigQuery) (named, error) {
	cfg, err := configOf(t, c, q)
	if err != nil {
		return named{}, err
	}
	name := "the applied configuration"
	switch {
	case q.Running:
		name = "the running configuration"
	case q.Number > 0:
		name = fmt.Sprintf("version %d", q.Number)
	}
	if cfg.Content == "" {
		return named{name, &spec.Config{}}, nil
	}
	parsed, err := spec.Parse(name, []byte(cfg.Content))
	var faults spec.Faults
	if errors.As(err, &faults) {
		return named{}, fmt.Errorf("%s was applied by another version of Heddle and is not valid for this program: %w",
			name, err)
	}
	return named{name, parsed}, err
}
