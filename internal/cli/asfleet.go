package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// AsFleet runs a command that asks a controller for something and prints it.
func AsFleet[T any](c *cobra.Command, d Deps, t *FleetTarget, o *Output,
	ask func(context.Context, *api.Fleet) (T, error), text func(io.Writer, T) error) error {
	if err := o.Check(); err != nil {
		return err
	}
	out, err := AskFleet(c, t, 0, ask)
	if err != nil {
		return err
	}
	return o.Print(d, out, func(w io.Writer) error { return text(w, out) })
}

// NeverNil is a controller's list, so that JSON has one also where there is nothing.
func NeverNil[T any](list []T, err error) ([]T, error) {
	if list == nil {
		list = []T{}
	}
	return list, err
}

// PrintFleetNotes says what of an answer may be old.
func PrintFleetNotes(w io.Writer, unreachable []string, stale string) error {
	var notes []string
	for _, name := range unreachable {
		notes = append(notes, "note: controller "+name+" does not answer (heddle-controller list)")
	}
	if stale != "" {
		notes = append(notes, "note: "+stale)
	}
	for _, n := range notes {
		if _, err := fmt.Fprintln(w, n); err != nil {
			return err
		}
	}
	return nil
}
