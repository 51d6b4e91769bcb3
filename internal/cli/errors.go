package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"heddle/internal/agent/supervise"
	"heddle/internal/api"
	"heddle/internal/host/interrupt"
	"heddle/internal/lab/cmd"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// SilentError ends the program with a status after the command has already written its output.
type SilentError struct{ Status int }

func (e *SilentError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// statusError is an error with an exit status of its own.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// exitStatus returns the exit status of the program for an error.
func exitStatus(err error) int {
	var silent *SilentError
	var own *statusError
	var usage *UsageError
	var asked *cmd.Fault
	switch {
	case errors.As(err, &own):
		return own.status
	case errors.As(err, &silent):
		return silent.Status
	case errors.Is(err, interrupt.ErrInterrupted):
		return ExitFailure
	case errors.As(err, &usage), errors.As(err, &asked), isFault(err):
		return ExitUsage
	}
	return ExitFailure
}

// isFault reports whether the error is a fault in the user's input, found by the program or by the agent.
func isFault(err error) bool {
	var faults spec.Faults
	var answer *api.Error
	return errors.As(err, &faults) || errors.As(err, &answer) && answer.Kind == api.Invalid
}

// placed matches the position of a fault in a file at the beginning of a line, in the form of editors and compilers:
// heddle.yaml:7:3: ….
var placed = regexp.MustCompile(`^\S+?:\d+:\d+: `)

// printError writes an error to standard error, one line per fault. A fault in a file begins with its position, which
// editors recognise; any other line begins with the program's name.
func printError(d Deps, err error) {
	var silent *SilentError
	if errors.As(err, &silent) {
		return
	}
	faults, priority := isFault(err), supervise.Priority(d.Stderr, d.Getenv, slog.LevelError)
	for line := range strings.Lines(err.Error()) {
		prefix := "heddle: "
		if faults && placed.MatchString(line) {
			prefix = ""
		}
		fmt.Fprintf(d.Stderr, "%s%s%s\n", priority, prefix, printable.Text(strings.TrimRight(line, "\n")))
	}
}

// warn writes a warning to standard error.
func (d Deps) warn(text string) {
	priority := supervise.Priority(d.Stderr, d.Getenv, slog.LevelWarn)
	fmt.Fprintf(d.Stderr, "%sheddle: warning: %s\n", priority, printable.Text(text))
}

// notes prints remarks about what works but is seldom intended.
func (d Deps) notes(list []string) {
	for _, n := range list {
		fmt.Fprintf(d.Stderr, "heddle: note: %s\n", printable.Text(n))
	}
}

// usagef returns a fault of the command line.
func usagef(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }

// exactly requires n arguments and names them in the error.
func exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no argument"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		if f := c.Flags().Lookup(portGroup); f != nil && !f.Changed && len(args) == len(names)+1 {
			return usagef("%s takes %s; name the port group with --%s %s", c.CommandPath(), want, portGroup,
				printable.ShellWord(args[len(args)-1]))
		}
		return usagef("%s takes %s; %d given (see %q)", c.CommandPath(), want, len(args), c.CommandPath()+" --help")
	}
}

// atMost checks that no more arguments are given than are named.
func atMost(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= len(names) {
			return nil
		}
		return usagef("%s takes at most %s; %d given (see %q)", c.CommandPath(), strings.Join(names, " "), len(args),
			c.CommandPath()+" --help")
	}
}
