package top

import (
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

// SumModel is the state of a view of sums of flows by rate.
type SumModel struct {
	// Title says whose flows these are, Only which of them are asked for; "" for all.
	Title, Only string
	Interval    time.Duration
	// Heads are the headings of a row's names.
	Heads []string
	// Sort is bits or packets.
	Sort   string
	Paused bool
	Fault  string
	// Width and Height are the terminal's, in characters.
	Width, Height int

	offset int
	last   api.FlowSums
	names  func(*api.FlowSum) []string
}

// NewSums is a view; names are the first cells of a row, one for each heading.
func NewSums(m SumModel, names func(*api.FlowSum) []string) *SumModel {
	m.names = names
	return &m
}

// Update takes in what passed in an interval.
func (m *SumModel) Update(s api.FlowSums) { m.last, m.Fault = s, "" }

// Key is a key that was pressed.
func (m *SumModel) Key(key string) Action {
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
		m.Sort = map[bool]string{true: "bits", false: "packets"}[m.Sort == "packets"] // from the next interval on
		m.offset = 0
	default:
		m.offset = scrolled(key, m.offset, max(1, m.Height-above-1), len(m.rows()))
	}
	return Nothing
}

// rows are those that are shown: the rest is the last.
func (m *SumModel) rows() []api.FlowSum {
	rows := slices.Clone(m.last.Rows)
	if rest := m.last.Rest; rest.Groups > 0 {
		rest.Name = fmt.Sprintf("%d others", rest.Groups)
		rows = append(rows, rest)
	}
	return rows
}

// Screen is what the terminal shows: Height lines at most, none longer than Width.
func (m *SumModel) Screen() []Line {
	rows, body := m.rows(), max(0, m.Height-above)
	m.offset = max(0, min(m.offset, len(rows)-body))
	lines := []Line{{Text: m.first()}, {Text: m.total()}, {Text: m.status()}, {Text: m.heading(), Head: true}}
	for _, r := range rows[m.offset:min(len(rows), m.offset+body)] {
		names := []string{r.Name}
		if r.Groups == 0 {
			names = m.names(&r)
		}
		share := fmt.Sprintf("%.1f %%", 100*r.Share)
		lines = append(lines, Line{Text: m.join(names, fmt.Sprint(r.Flows), stats.Short(r.Rates.Packets), stats.Short(r.Rates.Bits), share)})
	}
	for i := range lines {
		lines[i].Text = cut(lines[i].Text, m.Width)
	}
	return lines[:min(len(lines), m.Height)]
}

func (m *SumModel) first() string {
	only := ""
	if m.Only != "" {
		only = "  only " + clean(m.Only)
	}
	return fmt.Sprintf("heddle flows top  %s  %s  every %v  by %s%s", clean(m.Title), m.last.Time.Format(time.TimeOnly), m.Interval, m.last.By, only)
}

func (m *SumModel) total() string {
	t := m.last.Total
	text := fmt.Sprintf("%d flows   %spkt/s   %sbit/s   each packet once", t.Flows, spaced(t.Rates.Packets), spaced(t.Rates.Bits))
	if n := m.last.SamplingRate; n > 0 {
		text += fmt.Sprintf("   of one packet in %d", n+1)
	}
	return text
}

func (m *SumModel) status() string {
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

func (m *SumModel) heading() string {
	packets, bits := "PKT/s", "BIT/s"
	if m.Sort == "packets" {
		packets += "↓"
	} else {
		bits += "↓"
	}
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

// Batch writes the view as lines, for who reads it without a terminal.
func (m *SumModel) Batch(w io.Writer) error {
	m.Width, m.Height = flowBatchWidth, above+len(m.rows())
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

// JSON writes the view as one line.
func (m *SumModel) JSON(w io.Writer) error { return json.NewEncoder(w).Encode(m.last) }

// ReadSums waits for what passed in the next interval, sorted so.
type ReadSums func(ctx context.Context, sort string) (api.FlowSums, error)

// sumView is the view of a SumModel.
type sumView struct {
	*SumModel
	read ReadSums
}

// RunSums shows sums as Show does.
func RunSums(m *SumModel, read ReadSums) View { return sumView{m, read} }

func (v sumView) Draw(width, height int) []Line {
	v.Width, v.Height = width, height
	return v.Screen()
}

// Every is less than the interval: reading waits for it.
func (v sumView) Every() time.Duration { return v.Interval / 4 }
func (v sumView) Resting() bool        { return v.Paused }

// Read waits for an interval to end. An agent that is away may come back; one that never answered is an error.
func (v sumView) Read() func(context.Context) func() error {
	sort := v.Sort
	return func(ctx context.Context) func() error {
		s, err := v.read(ctx, sort)
		return func() error {
			switch {
			case err != nil && v.last.Time.IsZero():
				return err
			case err != nil:
				v.Fault = err.Error()
			default:
				v.Update(s)
			}
			return nil
		}
	}
}
