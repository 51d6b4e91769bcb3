package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/host/interrupt"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// Yes asks a person on the terminal; without an answer it returns false.
func (d Deps) Yes(c *cobra.Command, question string) (bool, error) {
	fmt.Fprintf(d.Stderr, "%s [y/N] ", question)
	answer, err := bufio.NewReader(interrupt.Reader(c.Context(), d.Stdin)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(d.Stderr)
	}
	if c.Context().Err() != nil {
		return false, c.Context().Err()
	}
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes", nil
}

func ParseMAC(s string) (string, error) {
	m, err := plan.ParseMAC(s)
	if err != nil {
		return "", &UsageError{Err: err}
	}
	return m.String(), nil
}

// FileFlag adds the flag -f.
func FileFlag(c *cobra.Command, file *string) {
	c.Flags().StringVarP(file, "file", "f", "", "configuration file; - for standard input")
	_ = c.MarkFlagFilename("file", "yaml", "yml")
}

// ReadFile reads the file of -f, or standard input, until ctx ends.
func ReadFile(ctx context.Context, d Deps, file string) ([]byte, error) {
	switch file {
	case "":
		return nil, Usagef("say which file, with -f FILE (- for standard input)")
	case "-":
		return spec.Read(interrupt.Reader(ctx, d.Stdin))
	}
	b, err := interrupt.Do(ctx, func() ([]byte, error) { return spec.ReadFile(file) })
	if errors.Is(err, os.ErrNotExist) {
		return nil, Usagef("there is no file %s", file)
	}
	return b, err
}

// FileName returns the name of the file in messages.
func FileName(file string) string {
	if file == "-" {
		return "<stdin>"
	}
	return file
}
