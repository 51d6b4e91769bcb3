package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
)

// asFleet runs a command that asks a controller for something and prints it.
func asFleet[T any](c *cobra.Command, d Deps, t *fleetTarget, o *output,
	ask func(context.Context, *api.Fleet) (T, error), text func(io.Writer, T) error) error {
	if err := o.check(); err != nil {
		return err
	}
	out, err := askFleet(c, t, 0, ask)
	if err != nil {
		return err
	}
	return o.print(d, out, func(w io.Writer) error { return text(w, out) })
}

// neverNil is a controller's list, so that JSON has one also where there is nothing.
func neverNil[T any](list []T, err error) ([]T, error) {
	if list == nil {
		list = []T{}
	}
	return list, err
}
