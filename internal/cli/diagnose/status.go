package diagnose

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/cli/config"
	times "heddle/internal/spec/period"
	"heddle/internal/spec/printable"
)

// Status is the state of a host at one moment.
type Status struct {
	// Healthy: every port and uplink is up and in full service, blocked or drained by an operator or waiting for its
	// guest, no finding is wrong and every collector is reached.
	Healthy    bool           `json:"healthy"`
	Agent      api.AgentInfo  `json:"agent"`
	Version    int            `json:"configVersion"`
	AppliedAt  time.Time      `json:"configAppliedAt,omitzero"`
	Switches   []StatusSwitch `json:"switches"`
	Ports      map[string]int `json:"ports"`
	Uplinks    map[string]int `json:"uplinks"`
	Problems   []Problem      `json:"problems"`
	Findings   []api.Finding  `json:"findings"`
	Collectors StatusCount    `json:"collectors"`
}

// StatusSwitch is one switch of a status.
type StatusSwitch struct {
	Name    string      `json:"name"`
	Ports   StatusCount `json:"ports"`
	Uplinks StatusCount `json:"uplinks"`
}

// StatusCount is how many objects of all are in order.
type StatusCount struct {
	Good int `json:"good"`
	All  int `json:"all"`
}

// Problem is an object that is not in order.
type Problem struct {
	Object string `json:"object"`
	State  string `json:"state"`
	Text   string `json:"text"`
	// Harmless: an operator or a migration has caused it.
	Harmless bool `json:"harmless"`
}

func NewStatus(d cli.Deps) *cobra.Command {
	t, o := &cli.Target{}, &cli.Output{}
	c := &cobra.Command{
		Use: "status", Short: "Show on one screen whether this host's switches work",
		Long: "Show on one screen the agent, the switches, the states of ports and uplinks, what is wrong with them, " +
			"the\n" +
			"findings of \"heddle advise\" and the flow collectors.\n\n" +
			"The exit status is 0 when all is well and 1 when something is wrong or no agent answers, so that a\n" +
			"monitoring system can run it. Blocked ports, drained uplinks, ports that wait for a migration, and " +
			"notes leave\n" +
			"it 0.\n\nWith --controller or --context it shows a controller and its cluster instead, and with --host " +
			"that host.",
		Example: "  heddle status\n  heddle status -o json\n  heddle status --context lab", Args: cli.Exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			everywhere, err := t.Everywhere()
			if err != nil {
				return err
			}
			if everywhere {
				return printControllerStatus(c, d, t.Controllers(), o)
			}
			s, err := cli.Ask(c, t, statusOf)
			if err != nil {
				return err
			}
			if err := o.Print(d, s, func(w io.Writer) error { return s.write(d, w) }); err != nil {
				return err
			}
			if !s.Healthy {
				return &cli.SilentError{Status: cli.ExitFailure}
			}
			return nil
		},
	}
	t.Flags(d, c)
	t = t.Looking(d, c)
	o.Flag(c)
	return c
}

// statusOf requests everything that a status shows.
func statusOf(ctx context.Context, s api.Service) (*Status, error) {
	state, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	advice, err := s.Advise(ctx, api.AdviseRequest{})
	if err != nil {
		return nil, err
	}
	flows, err := s.FlowStatus(ctx)
	if err != nil {
		return nil, err
	}
	versions, err := s.Configs(ctx)
	if err != nil {
		return nil, err
	}
	out := newStatusOf(state, advice, flows)
	if i := config.AppliedOf(versions); i >= 0 {
		out.Version, out.AppliedAt = versions[i].Number, versions[i].At
	}
	return out, nil
}

func newStatusOf(state *api.State, advice *api.Advice, flows *api.FlowStatus) *Status {
	s := &Status{Agent: state.Agent, Switches: []StatusSwitch{}, Ports: map[string]int{}, Uplinks: map[string]int{},
		Problems: []Problem{}, Findings: advice.Findings}
	for _, sw := range state.Switches {
		s.Switches = append(s.Switches, StatusSwitch{Name: sw.Name, Ports: StatusCount{sw.PortsUp, sw.Ports},
			Uplinks: StatusCount{sw.UplinksUp, len(sw.Uplinks)}})
	}
	for i := range state.Uplinks {
		s.lookAtUplink(&state.Uplinks[i])
	}
	for i := range state.Ports {
		s.lookAtPort(&state.Ports[i])
	}
	for _, sw := range flows.Switches {
		for _, c := range sw.Collectors {
			s.Collectors.All++
			if reached(string(c.State)) {
				s.Collectors.Good++
			}
		}
	}
	s.Healthy = advice.Healthy() && s.Collectors.Good == s.Collectors.All && len(s.Agent.Warnings) == 0
	for _, p := range s.Problems {
		s.Healthy = s.Healthy && p.Harmless
	}
	return s
}

// reached reports whether a collector in that state receives its records; "closed" is a collector for which nothing is
// metered.
func reached(state string) bool { return state == "sending" || state == "closed" }

func (s *Status) lookAtUplink(u *api.Uplink) {
	s.Uplinks[string(u.State)]++
	if u.State != api.Up || u.Reason != "" { // one that is up may not be in full service
		s.Problems = append(s.Problems, Problem{Object: "uplink " + u.Switch + "/" + u.Name, State: string(u.State),
			Text: u.Reason, Harmless: u.State == api.Blocked || u.State == api.Drained})
	}
}

func (s *Status) lookAtPort(p *api.Port) {
	state := string(p.State)
	if p.State == api.Up && p.Violation != "" {
		state = inViolation
	}
	s.Ports[state]++
	if state == string(api.Up) && p.Reason == "" {
		return
	}
	s.Problems = append(s.Problems, Problem{Object: "port " + p.Name, State: state,
		Text:     cmp.Or(p.Violation, p.Reason),
		Harmless: p.State == api.Blocked || p.State == api.Waiting && (p.Wait == nil || !p.Wait.Overdue)})
}

// leastBeside is how much space a problem's text has beside the name of its object; with less it stands below.
const leastBeside = 24

// inViolation is the state of a port that is up and whose guest breaks its policy.
const inViolation = "violation"

// mostShown is how many problems, or findings, a status shows; JSON has them all.
const mostShown = 10

func (s *Status) write(d cli.Deps, w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "agent       %s, Heddle %s, for %s (process %d)\n", printable.Text(s.Agent.Name), s.Agent.Version,
		times.Age(time.Since(s.Agent.Started)), s.Agent.PID)
	fmt.Fprintf(&b, "config      %s\n", s.configText())
	for _, text := range s.Agent.Warnings {
		fmt.Fprintf(&b, "            %s\n", d.Coloured(cli.Yellow, printable.Text(text)))
	}
	for i, sw := range s.Switches {
		fmt.Fprintf(&b, "%-12s%s: %s ports up, %s uplinks up\n", first(i, "switches"), printable.Text(sw.Name),
			cli.OutOf(sw.Ports.Good, sw.Ports.All), cli.OutOf(sw.Uplinks.Good, sw.Uplinks.All))
	}
	if len(s.Switches) == 0 {
		b.WriteString("switches    none: apply a configuration with heddle apply -f FILE\n")
	}
	fmt.Fprintf(&b, "ports       %s\nuplinks     %s\n", states(s.Ports), states(s.Uplinks))
	if s.Collectors.All > 0 {
		fmt.Fprintf(&b, "collectors  %s reached\n", cli.OutOf(s.Collectors.Good, s.Collectors.All))
	}
	s.writeProblems(d, &b)
	s.writeFindings(d, &b)
	if s.Healthy {
		b.WriteString(d.Coloured(cli.Green, "all is well") + "\n")
	} else {
		b.WriteString(d.Coloured(cli.Red, "something is wrong") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Status) configText() string {
	text := printable.Text(cmp.Or(s.Agent.Config, "none"))
	if s.Version > 0 {
		text += fmt.Sprintf(" (version %d, applied %s)", s.Version, s.AppliedAt.Local().Format(time.DateTime))
	}
	return text
}

func (s *Status) writeProblems(d cli.Deps, b *strings.Builder) {
	title := "not in use" // blocked or drained by somebody, or waiting
	if slices.ContainsFunc(s.Problems, func(p Problem) bool { return !p.Harmless }) {
		title = "problems"
	}
	for i, p := range s.Problems {
		if i == mostShown {
			fmt.Fprintf(b, "%-12sand %d more: heddle port list, heddle uplink list\n", "", len(s.Problems)-i)
			break
		}
		colour := cli.Red
		if p.Harmless {
			colour = cli.Yellow
		}
		is := "is"
		if p.State == inViolation {
			is = "is in"
		}
		line := fmt.Sprintf("%s %s %s", p.Object, is, d.Coloured(colour, p.State))
		if p.Text == "" {
			fmt.Fprintf(b, "%-12s%s\n", first(i, title), line)
			continue
		}
		room := d.TextWidth() - 12 - len(p.Object) - len(is) - len(p.State) - 4
		below := room < leastBeside
		if below {
			fmt.Fprintf(b, "%-12s%s:\n", first(i, title), line)
			room = d.TextWidth() - 14
		}
		for j, part := range cli.Wrap(printable.Text(p.Text), room) {
			if j == 0 && !below {
				fmt.Fprintf(b, "%-12s%s: %s\n", first(i, title), line, part)
				continue
			}
			fmt.Fprintf(b, "%-14s%s\n", "", part)
		}
	}
}

func (s *Status) writeFindings(d cli.Deps, b *strings.Builder) {
	for i := range s.Findings {
		if i == mostShown {
			fmt.Fprintf(b, "%-12sand %d more\n", "", len(s.Findings)-i)
			break
		}
		f := &s.Findings[i]
		colour := cli.Yellow
		if f.Level == api.FindingWrong {
			colour = cli.Red
		}
		about := f.Object()
		if f.Switch == "" { // about the host itself: which one is known
			about = f.Sign
		}
		fmt.Fprintf(b, "%-12s%s  %s: %s\n", first(i, "findings"), d.Coloured(colour, string(f.Level)), f.Rule,
			printable.Text(about))
	}
	if len(s.Findings) > 0 {
		fmt.Fprintf(b, "%-12sthe fix of each: heddle advise\n", "")
	}
}

// first returns the title of a group of lines, on the first of them.
func first(i int, title string) string {
	if i == 0 {
		return title
	}
	return ""
}

// states returns how many are in each state: "12: 10 up, 1 blocked, 1 down".
func states(n map[string]int) string {
	all, parts := 0, []string{}
	for _, state := range slices.Sorted(maps.Keys(n)) {
		all += n[state]
		if state != string(api.Up) {
			parts = append(parts, fmt.Sprintf("%d %s", n[state], state))
		}
	}
	if up := n[string(api.Up)]; up > 0 {
		parts = append([]string{fmt.Sprintf("%d up", up)}, parts...)
	}
	if all == 0 {
		return "none"
	}
	return fmt.Sprintf("%d: %s", all, strings.Join(parts, ", "))
}
