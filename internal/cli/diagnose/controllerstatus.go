package diagnose

import (
	"io"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose/doctor"
	"heddle/internal/platform/health"
)

// said reports whether the command line names a controller: then a command that is about this host is about that.
func whatSaid(t *cli.FleetTarget, c *cobra.Command) bool {
	return c.Flags().Changed("controller") || c.Flags().Changed("context")
}

// controllerStatus asks a controller how it is, and holds its clock against this machine's.
func controllerStatus(c *cobra.Command, t *cli.FleetTarget) (*api.ControllerStatus, error) {
	return cli.AskFleet(c, t, 0, cli.ClusterStatus)
}

// printControllerStatus is "heddle status --controller".
func printControllerStatus(c *cobra.Command, d cli.Deps, t *cli.FleetTarget, o *cli.Output) error {
	s, err := controllerStatus(c, t)
	if err != nil {
		return err
	}
	if err := o.Print(d, s, func(w io.Writer) error { return health.Write(w, s) }); err != nil {
		return err
	}
	return unless(s.Healthy)
}

// examineController is "heddle doctor --controller".
func examineController(c *cobra.Command, d cli.Deps, t *cli.FleetTarget, o *cli.Output) error {
	s, err := controllerStatus(c, t)
	if err != nil {
		return err
	}
	found := make([]doctor.Finding, 0, len(s.Findings))
	for _, f := range s.Findings {
		found = append(found, doctor.Finding{Check: f.Check, Level: doctor.Level(f.Level), Text: f.Text,
			Remedy: f.Remedy})
	}
	if err := o.Print(d, found, func(w io.Writer) error { return writeFindings(w, d, found) }); err != nil {
		return err
	}
	return unless(doctor.Healthy(found))
}

// unless ends the program with a failure that has been printed.
func unless(healthy bool) error {
	if healthy {
		return nil
	}
	return &cli.SilentError{Status: cli.ExitFailure}
}
