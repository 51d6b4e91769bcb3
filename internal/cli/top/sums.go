package top

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
	"heddle/internal/spec/printable"
)

// SumModel is the state of a view of sums of flows by rate.
type SumModel struct {
	FlowView
	// Heads are the headings of a row's names.
	Heads []string

	last  api.FlowSums
	names func(*api.FlowSum) []string
}

// NewSums returns a view; names are the first cells of a row, one for each heading.
func NewSums(m SumModel, names func(*api.FlowSum) []string) *SumModel {
	m.names = names
	return &m
}

// Update sets the sums of an interval.
func (m *SumModel) Update(s api.FlowSums) {
	m.answered(s.Time, s.Note, nil)
	m.last = s
}

// HostsSums are the sums of all hosts in an interval.
type HostsSums struct {
	api.FlowSums
	// Away are the hosts that do not answer.
	Away []string
}

// UpdateHosts sets the sums of all hosts in an interval.
func (m *SumModel) UpdateHosts(s HostsSums) {
	m.answered(s.Time, s.Note, s.Away)
	m.last = s.FlowSums
}

// Key processes a pressed key. A new order applies from the next interval.
func (m *SumModel) Key(key string) Action {
	a, _ := m.key(key, len(m.rows()))
	return a
}

// rows returns the rows that are shown: the last is the sum of the others.
func (m *SumModel) rows() []api.FlowSum {
	rows := slices.Clone(m.last.Rows)
	if rest := m.last.Rest; rest.Groups > 0 {
		rest.Name = fmt.Sprintf("%d others", rest.Groups)
		rows = append(rows, rest)
	}
	return rows
}

// Screen returns the content of the terminal: at most Height lines, none longer than Width.
func (m *SumModel) Screen() []Line {
	rows := m.rows()
	return m.screen(m.first(m.last.By), m.total(), m.heading(), len(rows), func(i int) string {
		r := &rows[i]
		names := []string{r.Name}
		if r.Groups == 0 {
			names = m.names(r)
		}
		share := fmt.Sprintf("%.1f %%", 100*r.Share)
		return m.join(names, fmt.Sprint(r.Flows), stats.Short(r.Rates.Packets), stats.Short(r.Rates.Bits), share)
	})
}

func (m *SumModel) total() string {
	t := m.last.Total
	text := fmt.Sprintf("%s   %s   each packet once", printable.Count(t.Flows, "flow", "flows"), ratesText(t.Rates))
	if n := m.last.SamplingRate; n > 0 {
		text += fmt.Sprintf("   of one packet in %d", n+1)
	}
	return text
}

func (m *SumModel) heading() string {
	packets, bits := m.rateHeads()
	return m.join(m.Heads, "FLOWS", packets, bits, "SHARE")
}

// sumCell is the width of a number.
const sumCell = 10

func (m *SumModel) join(names []string, numbers ...string) string {
	room := max(leastEnd, (m.Width-sumCell*len(numbers))/max(1, len(m.Heads)))
	var b strings.Builder
	for i := range m.Heads {
		name := ""
		if i < len(names) {
			name = clean(names[i])
		}
		b.WriteString(fit(name, room-1, false) + " ")
	}
	for _, n := range numbers {
		b.WriteString(fit(n, sumCell, true))
	}
	return b.String()
}

// Batch writes the view as lines, for use without a terminal.
func (m *SumModel) Batch(w io.Writer) error { return m.batch(w, len(m.rows()), m.Screen) }

// JSON writes the view as one line.
func (m *SumModel) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(m.last) }

// RunSums shows sums as Show does: read waits for those of the next interval, in the given order, and update takes them
// in.
func RunSums[T any](m *SumModel, read func(ctx context.Context, sort string) (T, error), update func(T)) View {
	return rateView[T]{m, read, update}
}
