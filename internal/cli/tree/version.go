package tree

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/version"
)

func newVersion(d cli.Deps) *cobra.Command {
	o := &cli.Output{}
	c := &cobra.Command{
		Use:     "version",
		Short:   "Show the program's version",
		Example: "  heddle version\n  heddle version -o json",
		Args:    cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			v := version.Of(d.Release)
			return o.Print(d, v, func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "heddle %s\n", v)
				return err
			})
		},
	}
	o.Flag(c)
	return c
}
