package diagnose

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/cli"
	"heddle/internal/diagnose/doctor"
	"heddle/internal/spec/printable"
	"heddle/internal/version"
)

// defaultConfig is the file that the unit of the package gives the agent.
const defaultConfig = "/etc/heddle/heddle.yaml"

func NewDoctor(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	w, fleet := doctor.Where{}, &cli.FleetTarget{}
	c := &cobra.Command{
		Use: "doctor", Short: "Check the host for what keeps a switch from working well",
		Long: "Check the host for what keeps a switch from working, or from working well, and print what to do " +
			"about each finding: kernel, bpf file system, devices and their offloads, MTU along the way, other " +
			"programs that use a device, the agent and its configuration.\n\n" +
			"Nothing is changed, and no agent is needed. Devices are looked up in the agent's network namespace, " +
			"wherever the command runs. Without root it lists what it could not check. The exit status is 1 when " +
			"something is wrong.\n\n" +
			"With --controller or --context it checks a controller instead: etcd's quota, members and alarms, what " +
			"expires soon, hosts that do not have the definition active, disk and clock.",
		Example: "  heddle doctor\n  heddle doctor -o json\n  heddle doctor --context lab", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			if whatSaid(fleet, c) {
				return examineController(c, d, fleet, o)
			}
			if _, err := t.Client(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), cli.CallTimeout)
			defer cancel()
			w.Agent, w.RunDir, w.Version = t.Name, t.RunDir, version.Of(d.Release).Version
			found := doctor.Examine(doctor.Gather(ctx, w))
			if err := o.Print(d, found, func(out io.Writer) error { return writeFindings(out, d, found) }); err != nil {
				return err
			}
			if !doctor.Healthy(found) {
				return &cli.SilentError{Status: cli.ExitFailure}
			}
			return nil
		},
	}
	t.Flags(d, c)
	fleet.Flag(d, c, cli.DefaultController)
	o.Flag(c)
	c.Flags().StringVar(&w.StateDir, "state-dir", d.Env("HEDDLE_STATE_DIR", cli.DefaultStateDir),
		"state directory of the agents")
	c.Flags().StringVarP(&w.Config, "config", "c", defaultConfig, "configuration file of the agent")
	_ = c.MarkFlagFilename("config", "yaml", "yml")
	return c
}

// writeFindings prints a table whose last column wraps; remedies begin with an arrow.
func writeFindings(w io.Writer, d cli.Deps, found []doctor.Finding) error {
	colours := map[doctor.Level]string{doctor.OK: cli.Green, doctor.Wrong: cli.Red, doctor.Note: cli.Yellow,
		doctor.Unknown: cli.Yellow}
	name := 0
	for _, f := range found {
		name = max(name, len(f.Check))
	}
	const level = len("unknown")
	indent := strings.Repeat(" ", level+name+4)
	for _, f := range found {
		lines := cli.Wrap(f.Text, d.TextWidth()-len(indent))
		if f.Remedy != "" {
			for i, l := range cli.Wrap(f.Remedy, d.TextWidth()-len(indent)-2) {
				lines = append(lines, map[bool]string{true: "→ ", false: "  "}[i == 0]+l)
			}
		}
		state := d.Coloured(colours[f.Level], string(f.Level)) + strings.Repeat(" ", level-len(f.Level))
		if _, err := fmt.Fprintf(w, "%s  %-*s  %s\n", state, name, f.Check,
			strings.Join(lines, "\n"+indent)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", doctorSummary(found))
	return err
}

// doctorSummary returns the result of an examination in one sentence.
func doctorSummary(found []doctor.Finding) string {
	text := fmt.Sprintf("%d wrong, %s", doctor.Count(found, doctor.Wrong),
		printable.Count(doctor.Count(found, doctor.Note), "note", "notes"))
	if n := doctor.Count(found, doctor.Unknown); n > 0 {
		text += fmt.Sprintf(", %d could not be looked at", n)
	}
	return text
}
