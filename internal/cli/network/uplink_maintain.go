package network

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/known"
	"heddle/internal/spec/printable"
)

// maintenance is a command that changes an uplink's use.
type maintenance struct {
	verb, short, long string
	use               api.UplinkUse
	done              string // the uplink's state afterwards
}

// theMaintenance returns the commands that take uplinks out of use, and back into use.
func theMaintenance() []maintenance {
	return []maintenance{
		{"drain", "Take an uplink out of use without loss, for its maintenance",
			"Take an uplink out of use without loss: before its cable, its switch port or its network card is worked " +
				"on. The ports that use it move to other uplinks of their team as in a failover: at one instant, and " +
				"announced to the physical network. What still arrives by the drained uplink is accepted, and the " +
				"command waits until nothing does. LLDP and LACP go on; LACP says that the member leaves the LAG, so " +
				"that its partner sends by the others.\n\n" +
				"LAG instead of UPLINK drains all of its members. A drained uplink stays so until \"heddle uplink " +
				"restore\", also over restarts of the agent and of the host. The command refuses to cut ports off " +
				"that have no other uplink, unless --force is given.", api.IsDrained, "is drained"},
		{"block", "Take an uplink out of use, and let nothing pass any more",
			"Drain an uplink (\"heddle uplink drain\") and, when nothing arrives by it any more, block it: no frame " +
				"of the switch passes in either direction, and LACP is silent. The host's own frames on the uplink's " +
				"device go on. --wait 0 blocks at once; frames on their way are lost then.", api.IsBlocked,
			"is blocked"},
		{"restore", "Take a drained or blocked uplink back into use",
			"Take a drained or blocked uplink back into use. The ports go back to it as after a failure: at once, or " +
				"not before another uplink fails where failback is off.", api.InUse, "is back in use"},
	}
}

// maintained is what a command prints with -o json.
type maintained struct {
	*api.Maintained
	// Quiet: no unicast frame passed through the uplink any more when the command ended; nil if the command did not
	// check.
	Quiet *bool `json:"quiet,omitempty"`
}

// maintainCall is one command with its flags.
type maintainCall struct {
	maintenance
	d    cli.Deps
	t    *cli.Target
	o    cli.Output
	q    api.Maintain
	yes  bool
	wait time.Duration
}

func newUplinkMaintain(d cli.Deps, t *cli.Target, m maintenance) *cobra.Command {
	g := &maintainCall{maintenance: m, d: d, t: t, q: api.Maintain{Use: m.use}}
	c := &cobra.Command{
		Use: m.verb + " UPLINK", Short: m.short, Long: m.long, Args: cli.Exactly("UPLINK"),
		Example: "  heddle uplink " + m.verb + " uplink1 --dry-run\n  heddle uplink " + m.verb + " uplink1",
		RunE: func(c *cobra.Command, args []string) error {
			if err := g.o.Check(); err != nil {
				return err
			}
			g.q.Uplink = args[0]
			return g.run(c)
		},
	}
	f := c.Flags()
	f.StringVar(&g.q.Switch, "switch", "", "the uplink's switch, where several have one of that name")
	f.BoolVar(&g.q.DryRun, "dry-run", false, "only say what would move")
	if m.use != api.InUse {
		f.BoolVar(&g.q.Force, "force", false, "cut ports off that have no other uplink")
		f.BoolVar(&g.yes, "yes", false, "do not ask")
		f.DurationVar(&g.wait, "wait", 10*time.Second, "how long to wait until no unicast frame arrives by the uplink")
	}
	cli.WindowFlag(c, &g.q.Window)
	g.o.Flag(c)
	return c
}

func (g *maintainCall) run(c *cobra.Command) error {
	plan, err := g.ask(c, true, g.use)
	if err != nil {
		return err
	}
	if g.q.DryRun {
		cli.PrintWarnings(g.d, plan.Applied)
		cli.PrintTrial(g.d, plan.Applied.Trial)
		return g.print(plan, nil)
	}
	if g.d.Asking && !g.yes && g.use != api.InUse && len(plan.Applied.Changes) > 0 {
		if err := g.agreed(c, plan); err != nil {
			return err
		}
	}
	out, quiet, err := g.carryOut(c, plan)
	if err != nil {
		return g.o.PrintReverted(g.d, err)
	}
	cli.PrintWarnings(g.d, out.Applied)
	cli.PrintTrial(g.d, out.Applied.Trial)
	return g.print(out, quiet)
}

// carryOut drains before it blocks, so that frames on their way arrive.
func (g *maintainCall) carryOut(c *cobra.Command, plan *api.Maintained) (*api.Maintained, *bool, error) {
	g.q.ReadAt = cli.ReadAt()
	if g.use != api.IsBlocked || g.wait == 0 || len(plan.Applied.Changes) == 0 {
		out, err := g.ask(c, false, g.use)
		if err != nil || g.use != api.IsDrained || g.wait == 0 || len(out.Applied.Changes) == 0 {
			return out, nil, err
		}
		quiet, err := g.awaitQuiet(c, out)
		return out, &quiet, err
	}
	first, err := g.ask(c, false, api.IsDrained)
	if err != nil {
		return nil, nil, err
	}
	if t := first.Applied.Trial; t != nil && t.State == api.TrialConfirm {
		cli.PrintTrial(g.d, t)
		return nil, nil, fmt.Errorf("%s is drained and not blocked yet: run the command again once it is confirmed",
			g.q.Uplink)
	}
	quiet, err := g.awaitQuiet(c, first)
	if err != nil {
		return nil, nil, err
	}
	g.q.ReadAt = cli.ReadAt()
	out, err := g.ask(c, false, api.IsBlocked)
	if err != nil {
		return nil, nil, err
	}
	out.Moves, out.CutOff = first.Moves, first.CutOff
	out.Applied.Changes = append(first.Applied.Changes, out.Applied.Changes...)
	return out, &quiet, nil
}

// ask makes the agent do it, or say what it would do.
func (g *maintainCall) ask(c *cobra.Command, dry bool, use api.UplinkUse) (*api.Maintained, error) {
	q := g.q
	q.DryRun, q.Use = dry, use
	return cli.AskTried(g.d, c, g.t, q.Window, func(ctx context.Context, s api.Service) (*api.Maintained, error) {
		return s.Maintain(ctx, q)
	})
}

// agreed lists what will move, and asks for confirmation.
func (g *maintainCall) agreed(c *cobra.Command, plan *api.Maintained) error {
	w := printable.NewWriter(g.d.Stderr, g.d.Mark)
	cli.PrintWarnings(g.d, plan.Applied)
	cli.PrintTrial(g.d, plan.Applied.Trial)
	for _, line := range moveLines(plan, true) {
		fmt.Fprintln(w, line)
	}
	yes, err := g.d.Yes(c, strings.ToUpper(g.verb[:1])+g.verb[1:]+" uplink "+printable.Text(g.q.Uplink)+"?")
	if err == nil && !yes {
		err = fmt.Errorf("nothing was changed")
	}
	return err
}

// How long no unicast frame may pass through an uplink for it to count as quiet, and how often that is checked.
const (
	quietFor  = time.Second
	lookQuiet = 100 * time.Millisecond
)

// awaitQuiet waits until no unicast frame passes through the uplinks any more.
func (g *maintainCall) awaitQuiet(c *cobra.Command, out *api.Maintained) (bool, error) {
	end, since, last := time.Now().Add(g.wait), time.Now(), uint64(0)
	for first := true; ; first = false {
		list, err := cli.Ask(c, g.t, func(ctx context.Context, s api.Service) ([]api.Stats, error) {
			return s.Stats(ctx)
		})
		if err != nil {
			return false, err
		}
		now := time.Now()
		if n := unicasts(list, out); first || n != last {
			since, last = now, n
		}
		switch {
		case now.Sub(since) >= quietFor:
			return true, nil
		case now.After(end):
			return false, nil
		}
		select {
		case <-time.After(lookQuiet):
		case <-c.Context().Done():
			return false, c.Context().Err()
		}
	}
}

// unicasts counts the unicast frames that passed through the uplinks and had a receiver on this host: physical switches
// flood unknown unicast.
func unicasts(list []api.Stats, out *api.Maintained) (n uint64) {
	for _, s := range list {
		if !s.Uplink || s.Switch != out.Switch || !slices.Contains(out.Uplinks, s.Name) {
			continue
		}
		for _, v := range s.Counters {
			if v.Name == "packetsInUnicast" || v.Name == "packetsOutUnicast" {
				n += v.Value
			}
		}
		for _, v := range s.Drops {
			if v.Reason == "unknown-unicast" {
				n -= v.Value
			}
		}
	}
	return n
}

func (g *maintainCall) print(out *api.Maintained, quiet *bool) error {
	return g.o.Print(g.d, maintained{out, quiet}, func(w io.Writer) error {
		for _, line := range g.lines(out, quiet) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
		return nil
	})
}

func (g *maintainCall) lines(out *api.Maintained, quiet *bool) []string {
	who := "uplink " + strings.Join(out.Uplinks, ", ")
	if len(out.Uplinks) > 1 {
		who = "uplinks " + strings.Join(out.Uplinks, ", ")
	}
	done := g.done
	if len(out.Uplinks) > 1 {
		done = strings.Replace(done, "is ", "are ", 1)
	}
	if len(out.Applied.Changes) == 0 {
		if g.use == api.InUse {
			done = strings.Replace(done, "back ", "", 1)
		}
		return []string{who + " " + done + " already"}
	}
	lines := moveLines(out, out.Applied.DryRun)
	if out.Applied.DryRun {
		return append(lines, "nothing was changed (dry run)")
	}
	lines = append(lines, who+" "+done)
	switch {
	case quiet == nil:
	case *quiet && g.use == api.IsDrained:
		lines = append(lines, "no unicast frame passes by it any more: its link may be taken down")
	case !*quiet && g.use == api.IsDrained:
		lines = append(lines, fmt.Sprintf("unicast frames still arrive by it after %s, and are accepted: see \"heddle "+
			"stats %s\" before its link is taken down", g.wait, out.Uplinks[0]))
	case !*quiet:
		lines = append(lines, fmt.Sprintf("unicast frames still arrived by it after %s, and are dropped now", g.wait))
	}
	if g.use != api.InUse {
		lines = append(lines, "take it back with: "+printable.Command("heddle", "uplink", "restore", g.q.Uplink))
	}
	return lines
}

// moveLines says which ports move from where to where, and which are cut off.
func moveLines(out *api.Maintained, ahead bool) (lines []string) {
	by := map[string][]string{}
	var ways []string
	for _, m := range out.Moves {
		way := way(m.From) + " to " + way(m.To)
		if _, known := by[way]; !known {
			ways = append(ways, way)
		}
		name := m.Port
		if m.Host {
			name += " (the host's own)"
		}
		by[way] = append(by[way], name)
	}
	move, lose := "moved", "lost its uplink|lost their uplink"
	if ahead {
		move, lose = "", "loses its only uplink|lose their only uplink"
	}
	for _, w := range ways {
		n := len(by[w])
		lines = append(lines, fmt.Sprintf("%s %s from %s: %s", printable.Count(n, "port", "ports"),
			cmp.Or(move, verbFor(n, "moves|move")), w, known.List(by[w])))
	}
	if n := len(out.CutOff); n > 0 {
		lines = append(lines, fmt.Sprintf("%s %s: %s", printable.Count(n, "port", "ports"), verbFor(n, lose),
			known.List(out.CutOff)))
	}
	if len(lines) == 0 && out.Use != api.InUse {
		lines = append(lines, "no port uses another uplink by that")
	}
	return lines
}

// verbFor returns the form of a verb for a number: "one|many".
func verbFor(n int, forms string) string {
	one, many, _ := strings.Cut(forms, "|")
	if n == 1 {
		return one
	}
	return many
}

func way(uplinks []string) string {
	if len(uplinks) == 0 {
		return "no uplink"
	}
	return strings.Join(uplinks, ", ")
}
