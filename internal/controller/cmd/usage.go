package cmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// Exit statuses of the program, as heddle has them.
const (
	exitFailure = 1
	exitUsage   = 2 // the command line is wrong; nothing was changed
)

// usageError is a fault of the command line.
type usageError struct{ error }

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
		return usageError{fmt.Errorf("%s takes %s; %d given (see \"%s --help\")", c.CommandPath(), want, len(args),
			c.CommandPath())}
	}
}

// unknownCommand refuses a word that is no command.
func unknownCommand(c *cobra.Command, args []string) error {
	if err := cobra.NoArgs(c, args); err != nil {
		return usageError{fmt.Errorf("%w (see \"%s --help\")", err, c.CommandPath())}
	}
	return nil
}

// badFlag is the error of a flag that is unknown, or has a value that it can't have.
func badFlag(c *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w (see \"%s --help\")", err, c.CommandPath())}
}

// statusOf is the exit status of an error.
func statusOf(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailure
}

// notThere is an error of a call with what can be done here where no controller answers at the socket.
func notThere(err error, socket string) error {
	if !errors.Is(err, api.ErrNoController) {
		return err
	}
	return fmt.Errorf("%w at %s: start heddle-controller on this machine, or name its socket with --socket",
		api.ErrNoController, socket)
}
