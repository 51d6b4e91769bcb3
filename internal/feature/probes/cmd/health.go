package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/printable"
)

// New returns the command "heddle health".
func New(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	var where *cli.Target
	c := &cobra.Command{
		Use: "health", GroupID: cli.GroupTroubleshoot,
		Short: "Show what is wrong with the physical network between hosts",
		Long: "Show what the probes between hosts have found: VLANs and an MTU that the physical network lacks, " +
			"ports that it bundles wrongly, and tunnels that are cut, one-way, slow or lossy, each with what to do. " +
			"A switch has its hosts probe one another where healthCheck is true in its definition. The exit status " +
			"is 1 when something is wrong.\n\n" +
			"With --controller or --context it shows what all hosts together have found; with --host too, and " +
			"without a controller, what one host knows. A host without controllers probes between its own uplinks " +
			"alone.",
		Example: "  heddle health\n  heddle health --context lab\n  heddle health --context lab --host esx1 -o json",
		Args:    cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			all, err := where.Everywhere()
			switch {
			case err != nil:
				return err
			case all:
				return fleetHealth(c, d, where, o)
			}
			return hostHealth(c, d, where, o)
		},
	}
	t.Flags(d, c)
	where = t.Looking(d, c)
	o.Flag(c)
	c.AddCommand(newHealthBenchmark(d))
	return c
}

func fleetHealth(c *cobra.Command, d cli.Deps, t *cli.Target, o *cli.Output) error {
	h, err := cli.AskFleet(c, t.Controllers(), 0, func(ctx context.Context, f *api.Fleet) (*api.NetworkHealth, error) {
		return f.NetworkHealth(ctx)
	})
	if err != nil {
		return err
	}
	err = o.Print(d, h, func(w io.Writer) error {
		if err := writeNetworkFindings(w, d, h.Findings); err != nil {
			return err
		}
		return writeNetworkSummary(w, d, h)
	})
	return sick(h.Findings, err)
}

func hostHealth(c *cobra.Command, d cli.Deps, t *cli.Target, o *cli.Output) error {
	h, err := cli.Ask(c, t, func(ctx context.Context, s api.Service) (*api.HostHealth, error) {
		return s.NetworkHealth(ctx)
	})
	if err != nil {
		return err
	}
	err = o.Print(d, h, func(w io.Writer) error {
		if err := writeNetworkFindings(w, d, h.Findings); err != nil {
			return err
		}
		return writeHostHealth(w, d, h)
	})
	return sick(h.Findings, err)
}

// sick is the exit status when something is wrong.
func sick(list []api.NetworkFinding, err error) error {
	for _, f := range list {
		if err == nil && !f.Note {
			return &cli.SilentError{Status: cli.ExitFailure}
		}
	}
	return err
}

// writeNetworkFindings prints each finding with its remedy.
func writeNetworkFindings(w io.Writer, d cli.Deps, list []api.NetworkFinding) error {
	for _, f := range list {
		level, colour := "wrong", cli.Red
		if f.Note {
			level, colour = "note ", cli.Yellow
		}
		lines := cli.Wrap(f.Text, d.TextWidth()-7)
		for i, l := range cli.Wrap(f.Remedy, d.TextWidth()-9) {
			lines = append(lines, map[bool]string{true: "→ ", false: "  "}[i == 0]+l)
		}
		_, err := fmt.Fprintf(w, "%s  %s\n", d.Coloured(colour, level), strings.Join(lines, "\n       "))
		if err != nil {
			return err
		}
	}
	if len(list) > 0 {
		_, err := fmt.Fprintln(w)
		return err
	}
	return nil
}

// pathsText says how many paths pass.
func pathsText(paths, passing, waiting uint32) string {
	text := fmt.Sprintf("%d of %s pass", passing, printable.Count(int(paths), "path", "paths"))
	if waiting > 0 {
		text += fmt.Sprintf(", %d are not known yet", waiting)
	}
	return text
}

// tunnelsText says between how many pairs of tunnel endpoints packets pass; "" without tunnels.
func tunnelsText(pairs, passing, waiting uint32) string {
	if pairs == 0 {
		return ""
	}
	text := fmt.Sprintf("tunnels: %d of %s of endpoints pass", passing, printable.Count(int(pairs), "pair", "pairs"))
	if waiting > 0 {
		text += fmt.Sprintf(", %d are not known yet", waiting)
	}
	return text
}

func writeNetworkSummary(w io.Writer, d cli.Deps, h *api.NetworkHealth) error {
	for _, l := range networkLines(h) {
		if _, err := fmt.Fprintln(w, strings.Join(cli.Wrap(l, d.TextWidth()), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// networkLines sum up what all hosts together know.
func networkLines(h *api.NetworkHealth) []string {
	if h.Uplinks+h.Tunnels == 0 {
		return []string{"no uplink and no tunnel takes part: set healthCheck: true in a switch of the definition. " +
			"Hosts count some seconds after they connect"}
	}
	text := printable.Count(int(h.Hosts), "host", "hosts")
	if h.Uplinks > 0 {
		text += fmt.Sprintf(" with %s, in %s: %s", printable.Count(int(h.Uplinks), "uplink", "uplinks"),
			printable.Count(int(h.VLANs), "VLAN", "VLANs"), pathsText(h.Paths, h.Passing, h.Waiting))
	}
	if h.Lonely > 0 {
		text += fmt.Sprintf("; %d have one uplink alone, so that nobody can tell", h.Lonely)
	}
	if tunnels := tunnelsText(h.Tunnels, h.TunnelsPassing, h.TunnelsWaiting); tunnels != "" {
		return []string{text, tunnels}
	}
	return []string{text}
}

func writeHostHealth(w io.Writer, d cli.Deps, h *api.HostHealth) error {
	for _, l := range hostHealthLines(h) {
		if _, err := fmt.Fprintln(w, strings.Join(cli.Wrap(l, d.TextWidth()), "\n")); err != nil {
			return err
		}
	}
	return nil
}

// nobodyProbes says why there is nothing to show.
const nobodyProbes = "no uplink and no tunnel takes part: set healthCheck: true in a switch. An uplink counts while " +
	"its link is up and port groups use it, a tunnel while an endpoint of another host is known (heddle uplink list)"

// hostHealthLines sum up what one host knows.
func hostHealthLines(h *api.HostHealth) (lines []string) {
	tunnels := tunnelsText(h.Tunnels, h.TunnelsPassing, h.TunnelsWaiting)
	if h.Uplinks > 0 {
		lines = append(lines, fmt.Sprintf("%s: %s", printable.Count(int(h.Uplinks), "uplink", "uplinks"),
			pathsText(h.Paths, h.Passing, h.Waiting)))
	}
	if tunnels != "" {
		lines = append(lines, tunnels)
	}
	switch {
	case len(lines) == 0:
		lines = []string{nobodyProbes}
	case h.Alone && h.Paths+h.Tunnels == 0:
		lines = []string{"this host has no controller, and no two uplinks that could probe each other: nothing is " +
			"known"}
	case !h.Alone:
		lines = append(lines, "what all hosts have found: heddle health --controller ADDRESS")
	case h.Uplinks > 0:
		lines = append(lines, "this host has no controller: of uplinks, only its own probe one another")
	default:
		lines = append(lines, "this host has no controller: it knows what its own probes have found")
	}
	if h.Forged > 0 {
		lines = append(lines, fmt.Sprintf("%d frames pretended to be probes: no host of the cluster signed them",
			h.Forged))
	}
	return lines
}
