package top

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/cli/stats"
)

// FlowRow is a flow as a view shows it.
type FlowRow struct {
	// Port, Direction, VLAN, Protocol, Source and Destination are its cells.
	Port, Direction, VLAN, Protocol, Source, Destination string
	Rates                                                api.FlowRates
}

// FlowModel is the state of a view of flows by rate.
type FlowModel struct {
	// Title says whose flows these are, Only which of them are asked for; "" for all.
	Title, Only string
	Interval    time.Duration
	// Sort is bits or packets.
	Sort   string
	Paused bool
	Fault  string
	// Width and Height are the terminal's, in characters.
	Width, Height int

	offset int
	last   api.FlowTop
	rows   []FlowRow
}

// Update takes in what passed in an interval; row is how a flow is shown.
func (m *FlowModel) Update(t api.FlowTop, row func(api.Flow) FlowRow) {
	m.last, m.Fault, m.rows = t, "", make([]FlowRow, len(t.Flows))
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

// Key is a key that was pressed.
func (m *FlowModel) Key(key string) Action {
	page := max(1, m.Height-above-1)
	switch key {
	case "q", "\x03": // Ctrl-C is a character in raw mode
		return Quit
	case "\x1a": // Ctrl-Z
		return Suspend
	case "\x0c": // Ctrl-L
		return Redraw
	case "p", " ":
		m.Paused = !m.Paused
	case "s", "left", "right", "<", ">":
		m.Sort = map[bool]string{true: "bits", false: "packets"}[m.Sort == "packets"]
		m.offset = 0
		m.order()
	default:
		m.offset = scrolled(key, m.offset, page, len(m.rows))
	}
	return Nothing
}

// FlowHelp names the keys of a view of flows.
func FlowHelp() string {
	return "q quit; s sort by bits or packets; p pause; arrows, PgUp, PgDn, Home, End scroll"
}

// Screen is what the terminal shows: Height lines at most, none longer than Width.
func (m *FlowModel) Screen() []Line {
	body := max(0, m.Height-above)
	m.offset = max(0, min(m.offset, len(m.rows)-body))
	lines := []Line{{Text: m.first()}, {Text: m.sums()}, {Text: m.status()}, {Text: m.heading(), Head: true}}
	for _, r := range m.rows[m.offset:min(len(m.rows), m.offset+body)] {
		lines = append(lines, Line{Text: m.join(r.Port, r.Direction, r.VLAN, r.Protocol, r.Source, r.Destination, stats.Short(r.Rates.Packets), stats.Short(r.Rates.Bits))})
	}
	for i := range lines {
		lines[i].Text = cut(lines[i].Text, m.Width)
	}
	return lines[:min(len(lines), m.Height)]
}

func (m *FlowModel) first() string {
	only := ""
	if m.Only != "" {
		only = "  only " + clean(m.Only)
	}
	return fmt.Sprintf("heddle flows top  %s  %s  every %v%s", clean(m.Title), m.last.Time.Format(time.TimeOnly), m.Interval, only)
}

func (m *FlowModel) sums() string {
	text := fmt.Sprintf("%d flows, %d active   %spkt/s   %sbit/s   each packet counted once", m.last.Matching, m.last.Active, spaced(m.last.Sum.Packets), spaced(m.last.Sum.Bits))
	if n := m.last.SamplingRate; n > 0 {
		text += fmt.Sprintf(", of one in %d", n+1)
	}
	return text
}

// spaced is a number with a space behind it, or between it and its prefix.
func spaced(n float64) string { return stats.Short(n) + " " }

func (m *FlowModel) status() string {
	switch {
	case m.Fault != "":
		return "no answer: " + clean(m.Fault)
	case m.Paused:
		return "paused (p)"
	case m.last.Time.IsZero():
		return "measuring"
	case m.last.Note != "":
		return clean(m.last.Note)
	}
	return "q quit  s sort  p pause  arrows scroll"
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
	packets, bits := "PKT/s", "BIT/s"
	if m.Sort == "packets" {
		packets += "↓"
	} else {
		bits += "↓"
	}
	return m.join("PORT", "DIR", "VLAN", "PROTO", "SOURCE", "DESTINATION", packets, bits)
}

func (m *FlowModel) join(port, dir, vlan, proto, from, to, packets, bits string) string {
	end := max(leastEnd, (m.Width-flowPort-flowDir-flowVLAN-flowProto-2*flowRate)/2)
	gap := func(s string, width int) string { return fit(clean(s), width-1, false) + " " }
	return gap(port, flowPort) + gap(dir, flowDir) + gap(vlan, flowVLAN) + gap(proto, flowProto) + gap(from, end) + gap(to, end) +
		fit(packets, flowRate, true) + fit(bits, flowRate, true)
}

// Batch writes the view as lines, for who reads it without a terminal.
func (m *FlowModel) Batch(w io.Writer) error {
	m.Width, m.Height = flowBatchWidth, above+len(m.rows)
	for i, l := range m.Screen() {
		if i == 2 && m.last.Note == "" { // the keys do nothing here
			continue
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(l.Text, " ")); err != nil {
			return err
		}
	}
	return nil
}

// flowBatchWidth leaves 23 characters for each end of a flow.
const flowBatchWidth = 100

// JSON writes the view as one line.
func (m *FlowModel) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(m.last) }

// ReadFlows waits for what passed in the next interval, sorted so.
type ReadFlows func(ctx context.Context, sort string) (api.FlowTop, error)

// flowView is the view of a FlowModel.
type flowView struct {
	*FlowModel
	read ReadFlows
	row  func(api.Flow) FlowRow
}

// RunFlows shows flows as Show does.
func RunFlows(m *FlowModel, read ReadFlows, row func(api.Flow) FlowRow) View {
	return flowView{m, read, row}
}

func (v flowView) Draw(width, height int) []Line {
	v.Width, v.Height = width, height
	return v.Screen()
}

// Every is less than the interval: reading waits for it.
func (v flowView) Every() time.Duration { return v.Interval / 4 }
func (v flowView) Resting() bool        { return v.Paused }

// Read waits for an interval to end. An agent that is away may come back; one that never answered is an error.
func (v flowView) Read() func(context.Context) func() error {
	sort := v.Sort
	return func(ctx context.Context) func() error {
		t, err := v.read(ctx, sort)
		return func() error { return v.take(t, err) }
	}
}

func (v flowView) take(t api.FlowTop, err error) error {
	switch {
	case err != nil && v.last.Time.IsZero():
		return err
	case err != nil:
		v.Fault = err.Error()
	default:
		v.Update(t, v.row)
	}
	return nil
}
