package network

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"heddle/internal/api"
	"heddle/internal/cli"
	"heddle/internal/spec/known"
)

// LAG is a link aggregation group, as its members show it.
type LAG struct {
	Switch string `json:"switch"`
	Name   string `json:"name"`
	// State is up (every member is used), degraded (some are), single (one is used alone, without a partner) or down.
	State string `json:"state"`
	// Speed is the sum of the speeds of the members in use, in bits per second.
	Speed uint64 `json:"speed"`
	// Ports is how many ports' frames leave, or may leave, by a member.
	Ports   int          `json:"ports"`
	Members []api.Uplink `json:"members"`
}

func NewLAG(d cli.Deps) *cobra.Command {
	t := &cli.Target{}
	c := cli.Group("lag", "Show the LAGs and their members", "  heddle lag list\n  heddle lag show lag1")
	t.Flags(d, c)
	c.AddCommand(newLAGList(d, t), newLAGShow(d, t))
	return c
}

// lags returns the LAGs of which an uplink is a member.
func lags(s *api.State) []LAG {
	list := []LAG{}
	for _, u := range s.Uplinks {
		if u.LAG == nil {
			continue
		}
		at := slices.IndexFunc(list, func(l LAG) bool { return l.Switch == u.Switch && l.Name == u.LAG.Name })
		if at < 0 {
			at, list = len(list), append(list, LAG{Switch: u.Switch, Name: u.LAG.Name})
		}
		list[at].Members = append(list[at].Members, u)
	}
	for i := range list {
		list[i].judge(s)
	}
	return list
}

// judge computes the state of the LAG from its members.
func (l *LAG) judge(s *api.State) {
	single := false
	for _, u := range l.Members {
		if inUse(u) {
			l.Speed += u.Speed
			single = single || u.LAG.Single
		}
	}
	switch n := l.used(); {
	case n == 0:
		l.State = "down"
	case single:
		l.State = "single"
	case n < len(l.Members):
		l.State = "degraded"
	default:
		l.State = "up"
	}
	for _, p := range s.Ports {
		if p.Switch == l.Switch && slices.ContainsFunc(l.Members, func(u api.Uplink) bool {
			return slices.Contains(p.Uplinks, u.Name)
		}) {
			l.Ports++
		}
	}
}

// inUse reports whether frames may leave by a member.
func inUse(u api.Uplink) bool { return u.State == api.Up && u.LAG.Used }

func (l *LAG) used() (n int) {
	for _, u := range l.Members {
		if inUse(u) {
			n++
		}
	}
	return n
}

// partners returns the LACP partners of the members; a healthy LAG has one.
func (l *LAG) partners() string {
	var list []string
	for _, u := range l.Members {
		if p := u.LAG.Partner; p != nil {
			if text := fmt.Sprintf("%s key %d", p.System, p.Key); !slices.Contains(list, text) {
				list = append(list, text)
			}
		}
	}
	return strings.Join(list, ", ")
}

// problems returns the members that are not used, each with the reason.
func (l *LAG) problems() string {
	var list []string
	for _, u := range l.Members {
		if !inUse(u) {
			list = append(list, u.Name+" "+memberProblem(u))
		}
	}
	return strings.Join(list, ", ")
}

// memberProblem returns in one word why a member is not used.
func memberProblem(u api.Uplink) string {
	switch {
	case u.ReasonCode != "":
		return string(u.ReasonCode)
	case u.LAG.ReasonCode != "":
		return string(u.LAG.ReasonCode)
	}
	return string(u.State)
}

func newLAGList(d cli.Deps, t *cli.Target) *cobra.Command {
	head := []string{"SWITCH", "LAG", "STATE", "MEMBERS", "USED", "SPEED", "PORTS", "PARTNER", "PROBLEM"}
	return cli.Listing[LAG]{
		What: "the LAGs", Example: "  heddle lag list\n  heddle lag list --switch lab -o json",
		Long: "List the LAGs. STATE is up (every member is used), degraded (some are), single (one is used alone, " +
			"without a partner) or " +
			"down. SPEED is that of the members in use together, PORTS how many ports' frames leave by one of them, " +
			"PARTNER the system " +
			"that LACP hears, and PROBLEM why a member is not used.",
		Of:    lags,
		Owner: func(l LAG) string { return l.Switch },
		Table: func() *cli.Table {
			return &cli.Table{Head: head, Right: cli.Columns(head, "SPEED", "PORTS"), Keep: cli.Columns(head, "STATE",
				"USED",
				"SPEED", "PORTS"),
				Names:  cli.Columns(head, "SWITCH", "LAG", "MEMBERS"),
				Narrow: []func(*cli.Table){cli.LeaveOutTheOnly("SWITCH")}, Paint: cli.PaintPort(d, head)}
		},
		Row: func(l LAG) []string {
			return []string{l.Switch, l.Name, l.State, strings.Join(memberNames(l), ","), cli.OutOf(l.used(),
				len(l.Members)),
				speedText(l.Speed),
				strconv.Itoa(l.Ports), cli.Dash(l.partners()), cli.Dash(l.problems())}
		},
	}.Command(d, t)
}

func memberNames(l LAG) (list []string) {
	for _, u := range l.Members {
		list = append(list, u.Name)
	}
	return list
}

func newLAGShow(d cli.Deps, t *cli.Target) *cobra.Command {
	o, sw := &cli.Output{}, ""
	c := &cobra.Command{
		Use: "show LAG", Short: "Show one LAG: its members, and what LACP knows of each",
		Example: "  heddle lag show lag1 --switch lab",
		Args:    cli.Exactly("LAG"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			s, err := t.State(c)
			if err != nil {
				return err
			}
			l, err := cli.Pick(lags(s), known.Names{What: "LAG"}, args[0], sw, func(v LAG) (string, string) {
				return v.Switch, v.Name
			})
			if err != nil {
				return err
			}
			return o.Print(d, l, func(w io.Writer) error { return cli.Properties(w, lagProperties(d, l)) })
		},
	}
	t = t.Looking(d, c)
	o.Flag(c)
	cli.SwitchFlag(c, &sw)
	return c
}

func lagProperties(d cli.Deps, l LAG) [][2]string {
	rows := [][2]string{{"lag", l.Name}, {"switch", l.Switch}, {"state", d.Coloured(cli.StateColour(l.State), l.State)},
		{"members in use", cli.OutOf(l.used(), len(l.Members))}, {"speed in use", speedText(l.Speed)},
		{"ports", strconv.Itoa(l.Ports)},
		{"partner", l.partners()}}
	for _, u := range l.Members {
		text := fmt.Sprintf("%s, device %s, %s, %s", u.Name, cli.Dash(u.Device), u.State, memberText(*u.LAG))
		if u.Reason != "" && !strings.Contains(text, u.Reason) {
			text += ": " + u.Reason
		}
		if n := neighbourText(u); n != "" {
			text += ", at " + n
		}
		rows = append(rows, [2]string{"member", text})
	}
	return rows
}
