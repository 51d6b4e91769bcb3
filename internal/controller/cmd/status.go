package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/platform/health"
)

// statusTime bounds how long the controller may take to answer.
const statusTime = 30 * time.Second

// errUnwell ends the program with status 1 after it has printed what is wrong.
var errUnwell = errors.New("something is wrong; \"heddle doctor --controller\" says more")

// newStatus shows how the controller on this machine is.
func newStatus() *cobra.Command {
	var socket, format string
	c := &cobra.Command{
		Use: "status", Short: "Show on one screen how the controller on this machine is",
		Long: "Show on one screen how the controller on this machine is, its cluster and its hosts, and what is not " +
			"as\nit should be: what expires within 30 days, etcd's quota and members, hosts that do not have the\n" +
			"definition active, disk and clock. The exit status is 1 when something is wrong.",
		Example: "  heddle-controller status\n  heddle-controller status -o json", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return fmt.Errorf("-o %s: use table or json", format)
			}
			ctx, cancel := context.WithTimeout(c.Context(), statusTime)
			defer cancel()
			s, err := api.NewFleet(socket).Status(ctx)
			if err != nil {
				return notThere(err, socket)
			}
			if format == "json" {
				text, err := json.MarshalIndent(s, "", "  ")
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintf(c.OutOrStdout(), "%s\n", text); err != nil {
					return err
				}
			} else if err := health.Write(c.OutOrStdout(), s); err != nil {
				return err
			}
			if !s.Healthy {
				return errUnwell
			}
			return nil
		},
	}
	c.Flags().StringVar(&socket, "socket", defaultSocket, "socket of the controller")
	c.Flags().StringVarP(&format, "output", "o", "table", "output format: table or json")
	return c
}
