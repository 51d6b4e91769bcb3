package cli

import (
	"context"
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

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// SilentError ends the program with a status after the command has already written its output.
type SilentError struct{ Status int }

func (e *SilentError) Error() string { return fmt.Sprintf("exit status %d", e.Status) }

// StatusError is an error with an exit status of its own.
type StatusError struct {
	Err    error
	Status int
}

func (e *StatusError) Error() string { return e.Err.Error() }
func (e *StatusError) Unwrap() error { return e.Err }

// ExitStatus returns the exit status of the program for an error.
func ExitStatus(err error) int {
	var silent *SilentError
	var own *StatusError
	var usage *UsageError
	var asked *cmd.Fault
	switch {
	case errors.As(err, &own):
		return own.Status
	case errors.As(err, &silent):
		return silent.Status
	case errors.Is(err, interrupt.ErrInterrupted):
		return ExitFailure
	case errors.As(err, &usage), errors.As(err, &asked), IsFault(err):
		return ExitUsage
	}
	return ExitFailure
}

// IsFault reports whether the error is a fault in the user's input, found by the program or by the agent.
func IsFault(err error) bool {
	var faults spec.Faults
	var answer *api.Error
	return errors.As(err, &faults) || errors.As(err, &answer) && answer.Kind == api.Invalid
}

// placed matches the position of a fault in a file at the beginning of a line, in the form of editors and compilers:
// heddle.yaml:7:3: ….
var placed = regexp.MustCompile(`^\S+?:\d+:\d+: `)

// PrintError writes an error to standard error, one line per fault. A fault in a file begins with its position, which
// editors recognise; any other line begins with the program's name.
func PrintError(d Deps, err error) {
	var silent *SilentError
	if errors.As(err, &silent) {
		return
	}
	faults, priority := IsFault(err), supervise.Priority(d.Stderr, d.Getenv, slog.LevelError)
	for line := range strings.Lines(err.Error()) {
		prefix := "heddle: "
		if faults && placed.MatchString(line) {
			prefix = ""
		}
		fmt.Fprintf(d.Stderr, "%s%s%s\n", priority, prefix, printable.Text(strings.TrimRight(line, "\n")))
	}
}

// Warn writes a warning to standard error.
func (d Deps) Warn(text string) {
	priority := supervise.Priority(d.Stderr, d.Getenv, slog.LevelWarn)
	fmt.Fprintf(d.Stderr, "%sheddle: warning: %s\n", priority, printable.Text(text))
}

// Notes prints remarks about what works but is seldom intended.
func (d Deps) Notes(list []string) {
	for _, n := range list {
		fmt.Fprintf(d.Stderr, "heddle: note: %s\n", printable.Text(n))
	}
}

// Usagef returns a fault of the command line.
func Usagef(format string, args ...any) error { return &UsageError{Err: fmt.Errorf(format, args...)} }

// Exactly requires n arguments and names them in the error.
func Exactly(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		want := "no argument"
		if len(names) > 0 {
			want = strings.Join(names, " ")
		}
		if f := c.Flags().Lookup(PortGroup); f != nil && !f.Changed && len(args) == len(names)+1 {
			return Usagef("%s takes %s; name the port group with --%s %s", c.CommandPath(), want, PortGroup,
				printable.ShellWord(args[len(args)-1]))
		}
		return Usagef("%s takes %s; %d given (see %q)", c.CommandPath(), want, len(args), c.CommandPath()+" --help")
	}
}

// AtMost checks that no more arguments are given than are named.
func AtMost(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) <= len(names) {
			return nil
		}
		return Usagef("%s takes at most %s; %d given (see %q)", c.CommandPath(), strings.Join(names, " "), len(args),
			c.CommandPath()+" --help")
	}
}

// Interrupted is the error of a command, with what a person has to know who has interrupted it.
func Interrupted(c *cobra.Command, err error, left string) error {
	if !errors.Is(err, context.Canceled) || !errors.Is(c.Context().Err(), context.Canceled) {
		return err
	}
	return fmt.Errorf("interrupted: %s", left)
}

// IsNotFound reports whether the agent answered that the object does not exist.
func IsNotFound(err error) bool {
	var answer *api.Error
	return errors.As(err, &answer) && answer.Kind == api.NotFound
}
