package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// isTerminal says whether f is a terminal.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// SilentError ends the program with a status after the command has already written what there is to say.
type SilentError struct{ Status int }

func (e *SilentError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// printError writes an error to standard error, one line per fault.
func printError(d Deps, err error) {
	var silent *SilentError
	if errors.As(err, &silent) {
		return
	}
	for line := range strings.Lines(strings.TrimRight(err.Error(), "\n")) {
		fmt.Fprintf(d.Stderr, "heddle: %s\n", strings.TrimRight(line, "\n"))
	}
}

// usagef is a fault of the command line.
func usagef(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }

// exactly demands n arguments and names them in the complaint.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no argument"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		return usagef("%s takes %s; %d given (see %q)", c.CommandPath(), want, len(args), c.CommandPath()+" --help")
	}
}
