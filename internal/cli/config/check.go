package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/diagnose/advise"
	"heddle/internal/plan"
	"heddle/internal/spec"
	"heddle/internal/spec/printable"
)

// planWarnings returns what a valid configuration requests beyond the capacity of a host.
func planWarnings(cfg *spec.Config) []string {
	p, err := plan.ResolveValid(cfg, nil)
	if err != nil {
		return nil
	}
	return p.Warnings()
}

// Checked is the result of "heddle check".
type Checked struct {
	File     string      `json:"file"`
	Valid    bool        `json:"valid"`
	Faults   spec.Faults `json:"faults"`
	Warnings []string    `json:"warnings"`
	Notes    []string    `json:"notes"`
	// Switches and the following are how many objects the file declares, 0 if it has faults.
	Switches   int `json:"switches"`
	PortGroups int `json:"portGroups"`
	Uplinks    int `json:"uplinks"`
	Ports      int `json:"ports"`
}

// neighbourPatience bounds how long a check waits for what an agent hears of the physical network: it is worth having
// and not worth waiting for.
const neighbourPatience = 2 * time.Second

// neighbourNotes says what an agent of this host knows against the file by what the physical switches announce; none
// where no agent answers.
func neighbourNotes(c *cobra.Command, t *cli.Target, cfg *spec.Config) []string {
	client, err := t.Client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.Context(), neighbourPatience)
	defer cancel()
	s, err := client.State(ctx)
	if err != nil {
		return nil
	}
	return advise.NeighbourNotes(cfg, func(device string) (heard []api.Neighbour) {
		for _, u := range s.Uplinks {
			if u.Device == device && u.LLDP != nil {
				heard = append(heard, u.LLDP.Neighbours...)
			}
		}
		return heard
	})
}

func NewCheck(d cli.Deps) *cobra.Command {
	file, o, t := "", &cli.Output{}, &cli.Target{}
	c := &cobra.Command{
		Use: "check -f FILE", Short: "Check a configuration file; needs neither root nor an agent",
		Long: "Check a configuration file and print its faults with their lines: the first 200, and how many more " +
			"there are. The exit status is 2 if there is any fault.\n\n" +
			"Where an agent of this host runs and may be asked, VLANs that the physical switches do not announce by " +
			"LLDP at the file's uplinks are noted too.",
		Example: "  heddle check -f heddle.yaml\n  heddle check -f heddle.yaml -o json", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			b, err := cli.ReadFile(c.Context(), d, file)
			if err != nil {
				return err
			}
			v := Checked{File: cli.FileName(file), Faults: spec.Faults{}, Warnings: []string{}, Notes: []string{}}
			cfg, err := spec.Parse(v.File, b)
			if err != nil {
				return errors.Join(err, printFaults(o, d, v, err))
			}
			v.count(cfg)
			v.Notes = append(v.Notes, neighbourNotes(c, t, cfg)...)
			for _, w := range v.Warnings {
				d.Warn(w)
			}
			d.Notes(v.Notes)
			return o.Print(d, v, func(w io.Writer) error {
				_, err = fmt.Fprintf(w, "%s is valid: %s\n", v.File, v.summary())
				return err
			})
		},
	}
	cli.FileFlag(c, &file)
	o.Flag(c)
	t.Flags(d, c)
	return c
}

// printFaults prints, with -o json or yaml, the faults of a file; the command still returns err.
func printFaults(o *cli.Output, d cli.Deps, v Checked, err error) error {
	if o.Format == "table" || !errors.As(err, &v.Faults) {
		return nil
	}
	return o.Print(d, v, nil)
}

// count fills in the numbers and warnings of a valid file.
func (v *Checked) count(cfg *spec.Config) {
	v.Valid = true
	v.Warnings = append(v.Warnings, slices.Concat(cfg.Warnings(), planWarnings(cfg))...)
	v.Notes = append(v.Notes, cfg.Hints()...)
	v.Switches, v.Ports = len(cfg.Switches), len(cfg.Ports)
	for _, s := range cfg.Switches {
		v.PortGroups += len(s.PortGroups)
		v.Uplinks += len(s.Uplinks)
	}
}

func (v *Checked) summary() string {
	return fmt.Sprintf("%s, %s, %s, %s", printable.Count(v.Switches, "switch", "switches"),
		printable.Count(v.PortGroups, "port group", "port groups"),
		printable.Count(v.Uplinks, "uplink", "uplinks"), printable.Count(v.Ports, "port", "ports"))
}
