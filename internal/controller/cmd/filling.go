package cmd

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"heddle/internal/controller/seed"
)

// newFillHistory is for measurements alone.
func newFillHistory() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "fill-history CHANGES", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Make changes of one port group's VLAN, for measurements",
		Long: "Makes changes in the database of a controller that does not run, for measurements of its history, and " +
			"writes the revision of the last one. A history that people made is refused.",
		Example: "  heddle-controller fill-history 100000 --data-dir /tmp/measured",
		RunE: func(c *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return fmt.Errorf("%q is no number of changes: give at least 1", args[0])
			}
			revision, err := seed.Fill(c.Context(), dir, n)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), revision)
			return err
		},
	}
	c.Flags().StringVar(&dir, "data-dir", "", "directory of the controller")
	return c
}
