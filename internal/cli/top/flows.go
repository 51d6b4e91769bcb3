package top

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
	"heddle/internal/spec/printable"
)

// FlowRow is a flow as a row of a view.
type FlowRow struct {
	// Port, Direction, VLAN, Protocol, Source and Destination are its cells.
	Port, Direction, VLAN, Protocol, Source, Destination string
	Rates                                                api.FlowRates
}

// FlowModel is the state of a view of flows by rate.
type FlowModel struct {
	FlowView
	last api.FlowTop
	rows []FlowRow
}

// Update sets the flows of an interval; row makes the row of a flow.
func (m *FlowModel) Update(t api.FlowTop, row func(api.Flow) FlowRow) {
	m.answered(t.Time, t.Note)
	m.last, m.rows = t, make([]FlowRow, len(t.Flows))
	for i := range t.Flows {
		m.rows[i] = row(t.Flows[i].Flow)
		m.rows[i].Rates = t.Flows[i].Rates
	}
	m.order()
}

func (m *FlowModel) order() {
	slices.SortStableFunc(m.rows, func(a, b FlowRow) int { return cmp.Compare(m.rate(b), m.rate(a)) })
}

func (m *FlowModel) rate(r FlowRow) float64 {
	if m.Sort == "packets" {
		return r.Rates.Packets
	}
	return r.Rates.Bits
}

// Key processes a pressed key.
func (m *FlowModel) Key(key string) Action {
	a, sorted := m.key(key, len(m.rows))
	if sorted {
		m.order()
	}
	return a
}

// FlowHelp names the keys of a view of flows.
func FlowHelp() string {
	return "q quit; s sort by bits or packets; p pause; arrows, PgUp, PgDn, Home, End scroll"
}

// Screen returns the content of the terminal: at most Height lines, none longer than Width.
func (m *FlowModel) Screen() []Line {
	return m.screen(m.first(""), m.sums(), m.heading(), len(m.rows), func(i int) string {
		r := m.rows[i]
		return m.join(r.Port, r.Direction, r.VLAN, r.Protocol, r.Source, r.Destination, stats.Short(r.Rates.Packets),
			stats.Short(r.Rates.Bits))
	})
}

func (m *FlowModel) sums() string {
	text := fmt.Sprintf("%s, %d active   %s   each packet counted once",
		printable.Count(m.last.Matching, "flow", "flows"), m.last.Active, ratesText(m.last.Sum))
	if n := m.last.SamplingRate; n > 0 {
		text += fmt.Sprintf(", of one in %d", n+1)
	}
	return text
}

// Widths of the columns of a view of flows; source and destination share the rest.
const (
	flowPort  = 14
	flowDir   = 4
	flowVLAN  = 8
	flowProto = 10
	flowRate  = 8
	leastEnd  = 8
)

func (m *FlowModel) heading() string {
	packets, bits := m.rateHeads()
	return m.join("PORT", "DIR", "VLAN", "PROTO", "SOURCE", "DESTINATION", packets, bits)
}

func (m *FlowModel) join(port, dir, vlan, proto, from, to, packets, bits string) string {
	end := max(leastEnd, (m.Width-flowPort-flowDir-flowVLAN-flowProto-2*flowRate)/2)
	gap := func(s string, width int) string { return fit(clean(s), width-1, false) + " " }
	return gap(port, flowPort) + gap(dir, flowDir) + gap(vlan, flowVLAN) + gap(proto, flowProto) + gap(from, end) +
		gap(to, end) +
		fit(packets, flowRate, true) + fit(bits, flowRate, true)
}

// Batch writes the view as lines, for use without a terminal.
func (m *FlowModel) Batch(w io.Writer) error { return m.batch(w, len(m.rows), m.Screen) }

// JSON writes the view as one line.
func (m *FlowModel) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(m.last) }

// ReadFlows waits for the flows of the next interval, in the given order.
type ReadFlows func(ctx context.Context, sort string) (api.FlowTop, error)

// RunFlows shows flows as Show does.
func RunFlows(m *FlowModel, read ReadFlows, row func(api.Flow) FlowRow) View {
	return rateView[api.FlowTop]{m, read, func(t api.FlowTop) { m.Update(t, row) }}
}
