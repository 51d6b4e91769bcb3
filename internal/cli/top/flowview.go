package top

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"heddle/internal/api"
	"heddle/internal/diagnose/stats"
)

// FlowView is the common part of the views of flows and of their sums.
type FlowView struct {
	// Title names the agent, Only the filter; "" for none.
	Title, Only string
	Interval    time.Duration
	// Sort is bits or packets.
	Sort   string
	Paused bool
	Fault  string
	// Width and Height are the terminal's, in characters.
	Width, Height int

	offset int
	time   time.Time    // of the last answer; zero: none yet
	note   api.FlowNote // which came with it
	away   []string     // hosts that do not answer
}

// answered records that an answer has arrived.
func (v *FlowView) answered(at time.Time, note api.FlowNote, away []string) {
	v.time, v.note, v.Fault, v.away = at, note, "", away
}

// key processes a pressed key while there are this many rows; sorted: the order has changed.
func (v *FlowView) key(key string, rows int) (a Action, sorted bool) {
	switch key {
	case "q", "\x03": // Ctrl-C is a character in raw mode
		return Quit, false
	case "\x1a": // Ctrl-Z
		return Suspend, false
	case "\x0c": // Ctrl-L
		return Redraw, false
	case "p", " ":
		v.Paused = !v.Paused
	case "s", "left", "right", "<", ">":
		v.Sort = map[bool]string{true: "bits", false: "packets"}[v.Sort == "packets"]
		v.offset = 0
		return Nothing, true
	default:
		v.offset = scrolled(key, v.offset, max(1, v.Height-above-1), rows)
	}
	return Nothing, false
}

// screen returns a page of n rows below the lines about all of them: at most Height lines, none longer than Width.
func (v *FlowView) screen(first, sums, heading string, n int, row func(i int) string) []Line {
	body := max(0, v.Height-above)
	v.offset = max(0, min(v.offset, n-body))
	lines := []Line{{Text: first}, {Text: sums}, {Text: v.status()}, {Text: heading, Head: true}}
	for i := v.offset; i < min(n, v.offset+body); i++ {
		lines = append(lines, Line{Text: row(i)})
	}
	for i := range lines {
		lines[i].Text = cut(lines[i].Text, v.Width)
	}
	return lines[:min(len(lines), v.Height)]
}

// first returns the first line; by says by what the rows are summed, "" for single flows.
func (v *FlowView) first(by string) string {
	line := fmt.Sprintf("heddle flows top  %s  %s  every %v", clean(v.Title), v.time.Format(time.TimeOnly), v.Interval)
	if by != "" {
		line += "  by " + by
	}
	if v.Only != "" {
		line += "  only " + clean(v.Only)
	}
	return line
}

func (v *FlowView) status() string {
	switch {
	case v.Fault != "":
		return "no answer: " + clean(v.Fault)
	case v.Paused:
		return "paused (p)"
	case v.time.IsZero():
		return "measuring"
	case len(v.away) > 0:
		return "no answer from " + clean(strings.Join(v.away, ", "))
	case !v.note.None():
		return clean(v.note.Text)
	}
	return "q quit  s sort  p pause  arrows scroll"
}

// rateHeads returns the headings of the rates; an arrow marks the sorted column.
func (v *FlowView) rateHeads() (packets, bits string) {
	if v.Sort == "packets" {
		return "PKT/s↓", "BIT/s"
	}
	return "PKT/s", "BIT/s↓"
}

// ratesText returns rates as text for a sentence.
func ratesText(r api.FlowRates) string {
	return fmt.Sprintf("%s pkt/s   %s bit/s", stats.Short(r.Packets), stats.Short(r.Bits))
}

// flowBatchWidth leaves 23 characters for each end of a flow.
const flowBatchWidth = 100

// batch writes a view with n rows as lines, for use without a terminal.
func (v *FlowView) batch(w io.Writer, n int, screen func() []Line) error {
	v.Width, v.Height = flowBatchWidth, above+n
	for i, l := range screen() {
		if i == 2 && v.note.None() && len(v.away) == 0 { // keys have no effect here
			continue
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(l.Text, " ")); err != nil {
			return err
		}
	}
	return nil
}

// flowModel is a FlowModel or a SumModel.
type flowModel interface {
	Screen() []Line
	Key(string) Action
	common() *FlowView
}

func (v *FlowView) common() *FlowView { return v }

// rateView is the View of a model whose answers have type A.
type rateView[A any] struct {
	flowModel
	read func(ctx context.Context, sort string) (A, error)
	take func(A)
}

func (f rateView[A]) Draw(width, height int) []Line {
	f.common().Width, f.common().Height = width, height
	return f.Screen()
}

// Every returns less than the interval: reading waits for the interval to end.
func (f rateView[A]) Every() time.Duration { return f.common().Interval / 4 }
func (f rateView[A]) Resting() bool        { return f.common().Paused }

// Read waits for an interval to end. An agent that disappears may come back; one that never answered is an error.
func (f rateView[A]) Read() func(context.Context) func() error {
	v := f.common()
	sort := v.Sort
	return func(ctx context.Context) func() error {
		a, err := f.read(ctx, sort)
		return func() error {
			switch {
			case err != nil && v.time.IsZero():
				return err
			case err != nil:
				v.Fault = err.Error()
			default:
				f.take(a)
			}
			return nil
		}
	}
}
