package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"heddle/internal/diagnose/doctor"
	"heddle/internal/spec/printable"
	"heddle/internal/version"
)

// defaultConfig is the file that the unit of the package gives the agent.
const defaultConfig = "/etc/heddle/heddle.yaml"

func newDoctor(d Deps) *cobra.Command {
	t, o := &target{}, &output{}
	w, fleet := doctor.Where{}, &fleetTarget{}
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
		Example: "  heddle doctor\n  heddle doctor -o json\n  heddle doctor --context lab", Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if fleet.said(c) {
				return examineController(c, d, fleet, o)
			}
			if _, err := t.client(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), callTimeout)
			defer cancel()
			w.Agent, w.RunDir, w.Version = t.name, t.runDir, version.Of(d.Release).Version
			found := doctor.Examine(doctor.Gather(ctx, w))
			if err := o.print(d, found, func(out io.Writer) error { return writeFindings(out, d, found) }); err != nil {
				return err
			}
			if !doctor.Healthy(found) {
				return &SilentError{Status: ExitFailure}
			}
			return nil
		},
	}
	t.flags(d, c)
	fleet.flag(d, c, defaultController)
	o.flag(c)
	c.Flags().StringVar(&w.StateDir, "state-dir", d.env("HEDDLE_STATE_DIR", defaultStateDir),
		"state directory of the agents")
	c.Flags().StringVarP(&w.Config, "config", "c", defaultConfig, "configuration file of the agent")
	_ = c.MarkFlagFilename("config", "yaml", "yml")
	return c
}

// writeFindings prints a table whose last column wraps; remedies begin with an arrow.
func writeFindings(w io.Writer, d Deps, found []doctor.Finding) error {
	colours := map[doctor.Level]string{doctor.OK: green, doctor.Wrong: red, doctor.Note: yellow, doctor.Unknown: yellow}
	name := 0
	for _, f := range found {
		name = max(name, len(f.Check))
	}
	const level = len("unknown")
	indent := strings.Repeat(" ", level+name+4)
	for _, f := range found {
		lines := wrap(f.Text, d.textWidth()-len(indent))
		if f.Remedy != "" {
			for i, l := range wrap(f.Remedy, d.textWidth()-len(indent)-2) {
				lines = append(lines, map[bool]string{true: "→ ", false: "  "}[i == 0]+l)
			}
		}
		state := d.coloured(colours[f.Level], string(f.Level)) + strings.Repeat(" ", level-len(f.Level))
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

// wrap breaks a text between words into lines of at most width characters; a longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
