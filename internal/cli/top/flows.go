package top

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
	"heddle/internal/spec/printable"
)

// FlowRow is a flow as a row of a view.
type FlowRow struct {
	// Host is "" where one host is shown.
	Host string
	// Port, Direction, VLAN, Protocol, Source and Destination are its cells.
	Port, Direction, VLAN, Protocol, Source, Destination string
	Rates                                                api.FlowRates
}

// FlowModel is the state of a view of flows by rate.
type FlowModel struct {
	FlowView
	last  api.FlowTop
	hosts []string // of the flows; nil where one host is shown
	rows  []FlowRow
}

// HostsFlows are the flows of all hosts with the highest rates.
type HostsFlows struct {
	api.FlowTop
	// Hosts are those of Flows, Away those that do not answer.
	Hosts, Away []string
}

// UpdateHosts sets the flows of all hosts in an interval.
func (m *FlowModel) UpdateHosts(t HostsFlows, row func(api.Flow) FlowRow) {
	m.set(t.FlowTop, t.Away, row)
	m.hosts = append([]string{}, t.Hosts...)
	for i := range m.rows {
		m.rows[i].Host = m.hosts[i]
	}
	m.order()
}

// Update sets the flows of an interval; row makes the row of a flow.
func (m *FlowModel) Update(t api.FlowTop, row func(api.Flow) FlowRow) {
	m.set(t, nil, row)
	m.order()
}

func (m *FlowModel) set(t api.FlowTop, away []string, row func(api.Flow) FlowRow) {
	m.answered(t.Time, t.Note, away)
	m.last, m.hosts, m.rows = t, nil, make([]FlowRow, len(t.Flows))
	for i := range t.Flows {
		m.rows[i] = row(t.Flows[i].Flow)
		m.rows[i].Rates = t.Flows[i].Rates
	}
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
		return m.join(r.Host, r.Port, r.Direction, r.VLAN, r.Protocol, r.Source, r.Destination,
			stats.Short(r.Rates.Packets),
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
	return m.join("HOST", "PORT", "DIR", "VLAN", "PROTO", "SOURCE", "DESTINATION", packets, bits)
}

func (m *FlowModel) join(host, port, dir, vlan, proto, from, to, packets, bits string) string {
	hosts := m.hostWidth()
	end := max(leastEnd, (m.Width-hosts-flowPort-flowDir-flowVLAN-flowProto-2*flowRate)/2)
	gap := func(s string, width int) string { return fit(clean(s), width-1, false) + " " }
	if hosts > 0 {
		host = gap(host, hosts)
	} else {
		host = ""
	}
	return host + gap(port, flowPort) + gap(dir, flowDir) + gap(vlan, flowVLAN) + gap(proto, flowProto) +
		gap(from, end) +
		gap(to, end) +
		fit(packets, flowRate, true) + fit(bits, flowRate, true)
}

// hostWidth returns the width of the column of hosts, 0 where there is none.
func (m *FlowModel) hostWidth() int {
	if m.hosts == nil {
		return 0
	}
	longest := len(headings[Host])
	for _, h := range m.hosts {
		longest = max(longest, utf8.RuneCountInString(clean(h)))
	}
	return min(longest, mostHost) + 1
}

// Batch writes the view as lines, for use without a terminal.
func (m *FlowModel) Batch(w io.Writer) error { return m.batch(w, len(m.rows), m.Screen) }

// JSON writes the view as one line: over all hosts, each flow with its host.
func (m *FlowModel) JSON(w io.Writer) error {
	if m.hosts == nil {
		return json.NewEncoder(w).Encode(m.last)
	}
	type hostFlow struct {
		Host string `json:"host"`
		api.FlowRate
	}
	out := struct {
		api.FlowTop
		Flows []hostFlow `json:"flows"`
	}{FlowTop: m.last, Flows: []hostFlow{}}
	for i, f := range m.last.Flows {
		out.Flows = append(out.Flows, hostFlow{m.hosts[i], f})
	}
	return json.NewEncoder(w).Encode(out)
}

// RunFlows shows flows as Show does: read waits for those of the next interval, in the given order, and update takes
// them in.
func RunFlows[T any](m *FlowModel, read func(ctx context.Context, sort string) (T, error), update func(T)) View {
	return rateView[T]{m, read, update}
}
