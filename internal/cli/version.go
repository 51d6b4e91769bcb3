package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/version"
)

func newVersion(d Deps) *cobra.Command {
	o := &output{}
	c := &cobra.Command{
		Use:     "version",
		Short:   "Show the program's version",
		Example: "  heddle version\n  heddle version -o json",
		Args:    exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := o.check(); err != nil {
				return err
			}
			v := version.Of(d.Release)
			return o.print(d, v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "heddle %s\n", v)
				return err
			})
		},
	}
	o.flag(c)
	return c
}
