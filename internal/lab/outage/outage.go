package outage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
)

// Name is the experiment's name for "heddle lab run", Title what it shows.
const (
	Name  = "failover"
	Title = "what a guest notices when an uplink of its host fails (real traffic only)"
)

// Budget is how long traffic may be interrupted when an uplink fails, in seconds.
const Budget = 0.050

// Options say how it runs.
type Options struct {
	// RunDir and Program are those of lab.Options.
	RunDir, Program string
	// Quick takes fewer rounds and ports.
	Quick bool
	// Rounds, if set, is the number of rounds for the rows of the teaming experiment.
	Rounds int
	// Rows selects rows by name; empty: all.
	Rows []string
	// Progress, when set, is called with what is being done now.
	Progress func(string)
}

// row is one kind of outage.
type row struct {
	name, setting string
	many          bool // ports on the switch
	vm            string
	event         outageEvent
	out, in       bool // directions with traffic, seen from the guest
	held          bool // against the budget
}

// outageEvent is what happens while packets are counted.
type outageEvent uint8

const (
	linkDown    outageEvent = iota // the far end of the cable goes down
	adminDown                      // the host's device is set down
	linkUp                         // the link that was down comes back
	nothing                        // shows the machine's own variation
	networkGone                    // the network behind the far switch is gone; no link of the host sees that
)

func (e outageEvent) String() string {
	return [...]string{"link down", "device set down", "link back", "none", "network gone"}[e]
}

func rows() []row {
	return []row{
		{name: "baseline", setting: "both directions", vm: loud, event: nothing, out: true, in: true},
		{name: "link-down", setting: "both directions", vm: loud, event: linkDown, out: true, in: true, held: true},
		{name: "set-down", setting: "both directions", vm: loud, event: adminDown, out: true, in: true, held: true},
		{name: "failback", setting: "both directions", vm: loud, event: linkUp, out: true, in: true, held: true},
		{name: "receive-only", setting: "the guest is silent", vm: loud, event: linkDown, in: true, held: true},
		{name: "receive-only-unannounced", setting: "silent, notifySwitches off", vm: quiet, event: linkDown, in: true},
		{name: "link-down-many", setting: "both directions", many: true, vm: loud, event: linkDown, out: true, in: true,
			held: true},
		{name: "failback-many", setting: "both directions", many: true, vm: loud, event: linkUp, out: true, in: true,
			held: true},
		{name: "receive-only-many", setting: "silent, announced last", many: true, vm: loud, event: linkDown, in: true},
	}
}

// Check says whether the rows selected exist.
func (o Options) Check() error {
	_, err := o.selected()
	return err
}

func (o Options) selected() ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, o.Rows)
}

// effort is how much is measured.
type effort struct {
	rounds int
	many   int           // ports of the large switch
	rest   time.Duration // how long the idle agent is watched
}

func (o Options) effort() effort {
	if o.Quick {
		return effort{rounds: 3, many: 50, rest: time.Second}
	}
	return effort{rounds: 10, many: 1000, rest: 10 * time.Second}
}

// measured is the result of one row, one value per round.
type measured struct {
	row                         row
	ports                       int       // that moved
	took                        []float64 // seconds from the notification until the change was active
	out, in                     direction
	duplicated, reordered, sent uint64
	happened                    time.Time // of the round at hand
}

// direction is one direction's rounds.
type direction struct {
	gap  []float64 // the longest silence, seconds
	lost []float64 // packets
	when []report.Lane
}

// Run builds the labs, measures, and removes them, also when ctx ends on the way.
func Run(ctx context.Context, o Options) (_ *report.Report, err error) {
	list, err := o.selected()
	if err != nil {
		return nil, err
	}
	rep := &report.Report{Name: Name, Environment: report.Collect(time.Now()),
		Explained: "explanation/failover.md",
		Labs:      topology.OfText(labText(""))}
	var all []*measured
	var rests []atRest
	for _, many := range []bool{false, true} {
		var here []*measured
		for _, r := range list {
			if r.many == many {
				m := &measured{row: r}
				here, all = append(here, m), append(all, m)
			}
		}
		if len(here) > 0 {
			rest, err := o.measure(ctx, many, here)
			if err != nil {
				return nil, err
			}
			rests = append(rests, rest)
		}
	}
	for _, m := range all {
		m.report(rep)
	}
	for _, rest := range rests {
		rest.report(rep)
	}
	rep.Conclusions, rep.Notes = conclusions(all), notes()
	rep.Timelines = []report.Timeline{timeline(all)}
	rep.Plots = []report.Plot{
		{Title: "Longest silence of the traffic", Series: []report.Series{{Name: "from the guest", Field: "gap_out_s"},
			{Name: "to the guest", Field: "gap_in_s"}}},
		{Title: "From the notification until the change is active", Series: []report.Series{{Field: "active_s"}}},
	}
	return rep, nil
}

// measure makes the rounds of the rows that share a lab in turns, so that a disturbance of the machine affects all.
func (o Options) measure(ctx context.Context, many bool, list []*measured) (rest atRest, err error) {
	ports := 2
	if many {
		ports = o.effort().many
	}
	s, err := build(ctx, o, ports)
	if err != nil {
		return rest, err
	}
	defer func() { err = errors.Join(err, s.lab.Down()) }()
	o.say(fmt.Sprintf("watching the agent at rest, %d ports", ports))
	if rest, err = s.watchRest(ctx, o.effort().rest); err != nil {
		return rest, err
	}
	for round := range o.effort().rounds {
		for _, m := range list {
			o.say(fmt.Sprintf("%s, round %d of %d", m.row.name, round+1, o.effort().rounds))
			if err := s.round(ctx, m); err != nil {
				return rest, fmt.Errorf("%s, round %d: %w", m.row.name, round+1, err)
			}
		}
	}
	return rest, nil
}

func (o Options) say(what string) {
	if o.Progress != nil {
		o.Progress(what)
	}
}

// RowNames are the names of the rows of failover.
func RowNames() []string { return experiment.RowNames(rows(), func(r row) string { return r.name }) }
