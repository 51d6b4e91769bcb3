package sim

import (
	"fmt"
	"time"

	"heddle/internal/lab/experiment"
	"heddle/internal/plan"
)

// Options say how an experiment is simulated.
type Options struct {
	// Pings is the number of requests per row, 1–65535; 0: 21, as many as the real run sends.
	Pings int
	// Rows selects rows by name; empty: all.
	Rows []string
}

// Settings that are the same in the real run.
const (
	defaultPings = 21
	maxPings     = 1 << 16
	pingInterval = 40 * time.Millisecond
	warmupPings  = 5
)

// Result is the result of one row.
type Result struct {
	Row *experiment.Row
	// Pings are the requests sent, RepliesPerPing the mean over all but the last.
	Pings          int
	RepliesPerPing float64
	// UplinkFrames are the copies handed to the row's uplinks during all pings; Copies are all copies that the
	// switches of these uplinks handed to ports and uplinks.
	UplinkFrames, Copies uint64
	// Links are the cables and adapters of the scenario, with the frames of all pings.
	Links []Link
}

// Link is a cable or an adapter with the frames it carried in each direction.
type Link struct {
	A    string `json:"a" yaml:"a"` // "node/device"
	B    string `json:"b" yaml:"b"`
	AtoB uint64 `json:"frames_ab" yaml:"frames_ab"`
	BtoA uint64 `json:"frames_ba" yaml:"frames_ba"`
}

// Experiment simulates the rows of an experiment, each in a world of its own. The same experiment always gives the same
// results. The error wraps ErrStorm when frames circulate.
func Experiment(e *experiment.Experiment, o Options) ([]Result, error) {
	if o.Pings == 0 {
		o.Pings = defaultPings
	}
	if o.Pings < 1 || o.Pings >= maxPings {
		return nil, fmt.Errorf("%d pings: want 1 to %d", o.Pings, maxPings-1)
	}
	rows, err := e.Select(o.Rows)
	if err != nil {
		return nil, err
	}
	var all []Result
	for _, row := range rows {
		r, err := simulate(row, o.Pings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.Name, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// simulate runs one row: some pings until addresses are resolved and learned, then those that count.
func simulate(row *experiment.Row, pings int) (Result, error) {
	r := Result{Row: row, Pings: pings}
	if !row.From.Address.Is4() || !row.To.Address.Is4() {
		return r, fmt.Errorf("from %s to %s: the simulated guests speak IPv4 only", row.From.Address, row.To.Address)
	}
	w, err := newWorld(row.Scenario)
	if err != nil {
		return r, err
	}
	from, err := w.findStack(row.From.Node, row.From.Address)
	if err != nil {
		return r, err
	}
	if _, err := w.findStack(row.To.Node, row.To.Address); err != nil {
		return r, err
	}
	for _, n := range []int{warmupPings, pings} {
		w.clearCounts()
		replies, err := w.ping(from, row.From.Address, row.To.Address, n, pingInterval)
		if err != nil {
			return r, err
		}
		if a := answered(replies); a < n {
			return r, fmt.Errorf("%d of %d pings to %s stayed without answer", n-a, n, row.To.Address)
		}
		r.RepliesPerPing = repliesPerPing(replies)
	}
	w.counts(&r)
	return r, nil
}

// counts reads what was counted since the counts were reset.
func (w *world) counts(r *Result) {
	type vswitch struct{ host, name string }
	counted := map[vswitch]bool{}
	for _, u := range r.Row.Counted {
		r.UplinkFrames += w.hosts[u.Host].copies[plan.PortID{Switch: u.Switch, Name: u.Uplink}]
		counted[vswitch{u.Host, u.Switch}] = true
	}
	for name, h := range w.hosts {
		for id, n := range h.copies {
			if counted[vswitch{name, id.Switch}] {
				r.Copies += n
			}
		}
	}
	for _, c := range w.cables {
		if !c.inside {
			r.Links = append(r.Links, Link{A: c.a.end.String(), B: c.b.end.String(), AtoB: c.a.sent, BtoA: c.b.sent})
		}
	}
}

// perPing is a count of all pings as one of each.
func (r Result) perPing(n uint64) float64 { return float64(n) / float64(r.Pings) }
