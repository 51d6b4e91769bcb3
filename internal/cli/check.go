package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"heddle/internal/host/interrupt"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

func parseMAC(s string) (string, error) {
	m, err := plan.ParseMAC(s)
	if err != nil {
		return "", &UsageError{Err: err}
	}
	return m.String(), nil
}

// fileFlag adds -f.
func fileFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "file", "f", "", "configuration file; - for standard input")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
}

// readFile reads the file of -f, or standard input, until ctx ends.
func readFile(ctx context.Context, d Deps, file string) ([]byte, error) {
	switch file {
	case "":
		return nil, usagef("say which file, with -f FILE (- for standard input)")
	case "-":
		return spec.Read(interrupt.Reader(ctx, d.Stdin))
	}
	b, err := interrupt.Do(ctx, func() ([]byte, error) { return spec.ReadFile(file) })
	if errors.Is(err, os.ErrNotExist) {
		return nil, usagef("there is no file %s", file)
	}
	return b, err
}

// fileName is what messages call the file.
func fileName(file string) string {
	if file == "-" {
		return "<stdin>"
	}
	return file
}

// planWarnings are the requests of a valid configuration that exceed what a host can hold.
func planWarnings(cfg *spec.Config) []string {
	p, err := plan.ResolveValid(cfg, nil)
	if err != nil {
		return nil
	}
	return p.Warnings()
}

func newCheck(d Deps) *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "check -f FILE", Short: "Check a configuration file; needs neither root nor an agent",
		Long: "Check a configuration file and print its faults with their lines: the first 200, and how many more " +
			"there are. The exit status is 2 if there is any fault.",
		Example: "  heddle check -f heddle.yaml", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			b, err := readFile(c.Context(), d, file)
			if err != nil {
				return err
			}
			cfg, err := spec.Parse(fileName(file), b)
			if err != nil {
				return err
			}
			for _, w := range slices.Concat(cfg.Warnings(), planWarnings(cfg)) {
				d.warn(w)
			}
			d.notes(cfg.Hints())
			_, err = fmt.Fprintf(d.Stdout, "%s is valid: %s\n", fileName(file), summary(cfg))
			return err
		},
	}
	fileFlag(c, &file)
	return c
}

func summary(cfg *spec.Config) string {
	groups, uplinks := 0, 0
	for _, s := range cfg.Switches {
		groups += len(s.PortGroups)
		uplinks += len(s.Uplinks)
	}
	return fmt.Sprintf("%s, %s, %s, %s", printable.Count(len(cfg.Switches), "switch", "switches"),
		printable.Count(groups, "port group", "port groups"),
		printable.Count(uplinks, "uplink", "uplinks"), printable.Count(len(cfg.Ports), "port", "ports"))
}
