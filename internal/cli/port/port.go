package port

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/network"
	times "heddle/internal/spec/period"
)

func New(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("port", "Show, connect and change ports", "  heddle port list\n  heddle port connect vm7/eth0 "+
		"--switch lab --port-group web --device tap7\n  heddle port block vm7/eth0")
	t.Flags(d, c)
	c.AddCommand(newPortList(d, t), newPortShow(d, t), newPortConnect(d, t), newPortDisconnect(d, t),
		newPortBlock(d, t, true), newPortBlock(d, t, false), newPortMove(d, t), newPortActivate(d, t),
		newPortSilence(d, t), newPortRelease(d, t), newPortMoves(d, t), newPortStatic(d), newPortWhere(d),
		newPortMigrate(d))
	return c
}

func newPortShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o, policy := &cli.Output{}, false
	c := &cobra.Command{
		Use: "show PORT", Short: "Show one port: its state, its owner's adapter, its own settings",
		Long: "Show one port: its state, its owner's adapter, its own settings. PORT may also be the UUID or the " +
			"name of a VM that has one port.\n\nWith --controller the port is found on whichever host has it; where " +
			"several have one of that name, write HOST:PORT. A port of a host that does not answer is shown as it " +
			"was reported last.",
		Example: "  heddle port show vm1/eth0\n  heddle port show vm1/eth0 --policy\n" +
			"  heddle --context lab port show 5f3c9d0e-6a4b-4c1d-9a53-0c7b2f1e8d11", Args: cli.Exactly("PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			f, away, err := cli.Locate(c, t, cli.Wanted[api.Port]{Name: args[0], What: "port or VM", Kind: "ports",
				List: "heddle port list",
				Here: cli.PortsNamed, Runs: OfOneGuest})
			if away != nil && cli.IsMissing(err) {
				return cli.RememberedPort(d, c, t, o, args[0], away)
			}
			if err != nil {
				return err
			}
			learned, err := learnedAt(c, f.On)
			if err != nil {
				return err
			}
			p := f.Of
			shown := shownPort{Port: p, Moves: movesOf(c, f.On, p.Name)}
			if n := learned[place{p.Switch, p.Name}]; n > 0 || learns(p) {
				shown.Learned = &learnedMACs{Held: n, Limit: learnLimit(p)}
			}
			return o.Print(d, f.Object(shown), func(w io.Writer) error {
				if policy {
					return printEffective(w, p)
				}
				rows := append(f.Row(), portProperties(d, shown)...)
				return cli.Properties(w, append(rows, moveRows(shown.Moves)...))
			})
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	c.Flags().BoolVar(&policy, "policy", false, "show its effective policy, and where each value comes from, instead; "+
		"with -o json and yaml both are there anyway")
	return c
}

func portOf(t *cli.Target, c *cobra.Command, name string) (api.Port, error) {
	s, err := t.State(c)
	if err != nil {
		return api.Port{}, err
	}
	return cli.Pick(s.Ports, cli.PortsOf(s), name, "", func(p api.Port) (string, string) { return p.Switch, p.Name })
}

// shownPort is a port with what "port show" adds to it.
type shownPort struct {
	api.Port
	// Learned is nil for a port that learns no MACs.
	Learned *learnedMACs `json:"learned,omitempty"`
	// Moves from host to host, the oldest first, with their steps; none of a port that never moved.
	Moves []api.PortMove `json:"moves,omitempty"`
}

// learnedMACs is how many MACs a port has learned and may learn; its limit is 0 if it no longer learns.
type learnedMACs struct {
	Held  int `json:"held"`
	Limit int `json:"limit"`
}

func portProperties(d cli.Deps, p shownPort) [][2]string {
	rows := [][2]string{
		{"port", p.Name}, {"switch", p.Switch}, {"port group", p.PortGroup}, {"role", string(p.Role)},
		{"declared in", map[api.Origin]string{api.FromFile: "the configuration file", api.FromRun: "run time (port " +
			"connect)", api.FromController: "the controllers' definition"}[p.Origin]},
		{"set by command", cli.Joined(p.Overrides, ", ")},
		{"state", d.Coloured(cli.StateColour(string(p.State)), string(p.State))}, {"reason", p.Reason},
		{"violation", d.Coloured(cli.Red, p.Violation)},
		{"number", strconv.FormatUint(uint64(p.Number), 10)}, {"device", p.Device}, {"mtu", cli.Number(p.MTU)},
		{"overlay segment", network.VNIText(p.VNI)}, {"vlan", p.VLAN.String()},
		{"uplink in use", strings.Join(p.Uplinks, ", ")},
		{"mac", p.MAC}, {"mac in use", p.SeenMAC}, {"asks for promiscuous", p.Promiscuous},
		{"addresses", strings.Join(p.Addresses, ", ")},
		{"learned macs", learnedText(d, p)},
		{"vm", p.VM}, {"adapter", p.Adapter}, {"static port", p.PortID},
		{"label", p.Label}, {"description", p.Description}, {"conflict", d.Coloured(cli.Red, p.Conflict)},
		{"owner", p.Owner}, {"may use the macs of", strings.Join(p.Siblings, ", ")},
	}
	for _, o := range cli.Differing(p.Port) {
		rows = append(rows, [2]string{"beside the file", cli.OverrideText(p.Name, o)})
	}
	if at := p.CountersLackSince; !at.IsZero() {
		rows = append(rows, [2]string{"counters are missing", d.Coloured(cli.Yellow,
			"what the host that it came from counted after "+at.Format(time.DateTime))})
	}
	for _, s := range p.LeftOut {
		rows = append(rows, [2]string{"left out here", d.Coloured(cli.Yellow, s)})
	}
	for _, m := range p.Flapping {
		rows = append(rows, [2]string{"flapping mac", d.Coloured(cli.Yellow, m.String())})
	}
	for _, r := range refusals(p.Refused, time.Now()) {
		rows = append(rows, [2]string{"lately", d.Coloured(cli.Red, r)})
	}
	return rows
}

// learnedText returns how many MACs a port has learned of how many it may: "3 of 3", coloured if the limit is reached.
func learnedText(d cli.Deps, p shownPort) string {
	switch l := p.Learned; {
	case l == nil:
		return ""
	case learns(p.Port) && l.Held >= l.Limit:
		return d.Coloured(cli.Yellow, learnedOf(p.Port, l.Held))
	default:
		return learnedOf(p.Port, l.Held)
	}
}

// refusals describes which frames of its guest the port's policy refused: "refused forged-transmit 5m ago, from 02:…".
func refusals(list []api.Refusal, now time.Time) (lines []string) {
	for _, r := range list {
		who := r.MAC
		if r.Address != "" {
			who = r.Address
		}
		what := "refused"
		if r.Passed {
			what = "passed unlearned,"
		}
		text := fmt.Sprintf("%s %s %s ago, from %s", what, r.Reason, times.Age(now.Sub(r.Time)), who)
		if r.Past {
			text += "; not since"
		}
		lines = append(lines, text)
	}
	return lines
}

func newPortBlock(d cli.Deps, t *cli.Target, blocked bool) *cobra.Command {
	o, window := &cli.Output{}, api.Window{}
	use, short := "block", "Stop all traffic of a port"
	if !blocked {
		use, short = "unblock", "Let a blocked port's traffic pass again"
	}
	c := &cobra.Command{
		Use: use + " PORT", Short: short, Example: "  heddle port " + use + " vm7/eth0", Args: cli.Exactly("PORT"),
		Long: short + ". This lasts until the opposite command or, where the port group resets its ports, until the " +
			"port's " +
			"owner disconnects. The port group must allow single ports to be blocked (overrides.blocked, on by " +
			"default).",
		RunE: func(c *cobra.Command, args []string) error {
			q := api.Block{Port: args[0], Blocked: blocked, ReadAt: cli.ReadAt(), Window: window}
			return changePort(d, c, t, o, portChange{port: args[0], window: window, done: "is " + use + "ed"},
				func(ctx context.Context, s api.Service) (*api.Applied, error) { return s.Block(ctx, q) })
		},
	}
	cli.WindowFlag(c, &window)
	o.Flag(c)
	return c
}

// portChange is a change of one port.
type portChange struct {
	port   string
	window api.Window
	done   string // the port's state afterwards
	shown  bool   // print what is known about the port then
}

// changePort makes a change of one port and prints the port's new state or, with -o json, what was changed and when it
// was active.
func changePort(d cli.Deps, c *cobra.Command, t *cli.Target, o *cli.Output, p portChange,
	f func(context.Context, api.Service) (*api.Applied, error)) error {
	if err := o.Check(); err != nil {
		return err
	}
	out, err := cli.AskTried(d, c, t, p.window, f)
	if err != nil {
		return o.PrintReverted(d, cli.InFlags(c, p.port, err))
	}
	cli.PrintWarnings(d, out)
	cli.PrintTrial(d, out.Trial)
	return o.Print(d, out, func(w io.Writer) error {
		about := ""
		if now, err := portOf(t, c, p.port); p.shown && err == nil { // otherwise the change is made even so
			about = ": " + portLine(now)
		}
		_, err := fmt.Fprintf(w, "port %s %s%s\n", p.port, p.done, about)
		return err
	})
}

// portLine describes a port briefly: "switch lab, port group web, VLAN access 10, device tap7, up".
func portLine(p api.Port) string {
	state := string(p.State)
	if p.State != api.Up && p.Reason != "" {
		state += " (" + p.Reason + ")"
	}
	device := "no device"
	if p.Device != "" {
		device = "device " + p.Device
	}
	segment := "VLAN " + p.VLAN.String()
	if p.VNI != 0 {
		segment = p.SegmentText()
	}
	return fmt.Sprintf("switch %s, port group %s, %s, %s, %s", p.Switch, p.PortGroup, segment, device, state)
}
