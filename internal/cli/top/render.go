package top

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"heddle/internal/diagnose/stats"
	"heddle/internal/spec/period"
	"heddle/internal/spec/printable"
)

// Line is one line of the screen.
type Line struct {
	Text string
	// Head: headings of columns. Loud: frames that the port itself sent were dropped in the last interval, or it
	// flooded.
	Head, Loud bool
}

// above is the number of lines above the ports.
const above = 4

// body returns how many ports fit on the screen.
func (m *Model) body() int { return max(0, m.Height-above) }

var headings = [columns]string{"PORT", "IN bit/s", "OUT bit/s", "IN pkt/s", "OUT pkt/s", "BCAST/s", "DROP/s", "DROPS",
	"LAST DROP", "UNKNOWN/s", "HOST"}

// widths are the widths of the columns of numbers, in characters with the space before them: for the heading with its
// arrow, and a number of 5 characters. The column of ports is as wide as its names need.
var widths = [columns]int{BitsIn: 10, BitsOut: 10, PacketsIn: 10, PacketsOut: 10, ToMany: 9, DropRate: 8, Drops: 7,
	Unknown: 11}

const (
	lastWidth  = 28
	leastName  = 12
	groupWidth = 24
)

// wide reports whether the window is wide enough for what a narrow window leaves out: unknown unicast and the port
// group.
func (m *Model) wide() bool { return m.Width >= wideWidth }

// wideWidth is the least width for all columns.
const wideWidth = 160

// shown returns the columns of numbers, in the order of the screen. Unknown unicast is shown if the window is wide, or
// if ports are sorted by it. A window that is too narrow for all leaves out the least informative columns, so that no
// number and no reason of a drop is cut.
func (m *Model) shown() []Column {
	list := []Column{BitsIn, BitsOut, PacketsIn, PacketsOut, ToMany, DropRate, Drops}
	if m.wide() || m.Sort == Unknown {
		list = slices.Insert(list, 5, Unknown)
	}
	for _, c := range []Column{Drops, PacketsOut, PacketsIn, BitsOut, ToMany} {
		if m.hostWidth()+m.leastName()+total(list)+2+lastWidth <= m.Width {
			break
		}
		if c != m.Sort {
			list = slices.DeleteFunc(list, func(o Column) bool { return o == c })
		}
	}
	return list
}

// total returns the width of columns of numbers.
func total(list []Column) (n int) {
	for _, c := range list {
		n += widths[c]
	}
	return n
}

// Screen returns the content of the terminal: at most Height lines, none longer than Width.
func (m *Model) Screen() []Line {
	rows := m.Rows()
	length := len(rows)
	if m.detail != nil {
		length = len(m.details())
	}
	m.offset = max(0, min(m.offset, length-m.body()))
	lines := []Line{{Text: m.first(rows)}, {Text: m.sums(rows)}, {Text: m.status()}, {Text: m.heading(), Head: true}}
	switch {
	case m.help:
		lines = append(lines[:above-1], helpLines()...)
	case m.detail != nil:
		all := m.details()
		lines = append(lines, all[m.offset:]...)
	default:
		for _, r := range rows[m.offset:min(len(rows), m.offset+m.body())] {
			lines = append(lines, Line{Text: m.row(&r), Loud: r.faulty()})
		}
	}
	for i := range lines {
		lines[i].Text = cut(lines[i].Text, m.Width)
	}
	return lines[:min(len(lines), m.Height)]
}

func (m *Model) first(rows []Row) string {
	shown := printable.Count(len(rows), "port", "ports")
	if n := m.body(); len(rows) > n && m.detail == nil {
		shown = fmt.Sprintf("%d-%d of %d ports", m.offset+1, m.offset+n, len(rows))
	}
	line := fmt.Sprintf("heddle top  %s  %s  every %v  %s", clean(m.Title), m.now.Format(time.TimeOnly), m.Interval,
		shown)
	for _, u := range m.links {
		host := ""
		if u.row.Host != "" {
			host = clean(u.row.Host) + ":"
		}
		line += fmt.Sprintf("  %s%s %.0f%%", host, m.name(u.row), u.percent)
	}
	return line
}

func (m *Model) sums(rows []Row) string {
	var r stats.Rates
	for _, row := range rows {
		if row.Rates != nil {
			r.BytesIn += row.Rates.BytesIn
			r.BytesOut += row.Rates.BytesOut
			r.PacketsIn += row.Rates.PacketsIn
			r.PacketsOut += row.Rates.PacketsOut
			r.InDropped += row.Rates.InDropped + row.Rates.OutDropped
		}
	}
	return fmt.Sprintf("in %sbit/s %s pkt/s   out %sbit/s %s pkt/s   dropped and refused %s/s",
		stats.Short(8*r.BytesIn), stats.Short(r.PacketsIn),
		stats.Short(8*r.BytesOut), stats.Short(r.PacketsOut), stats.Short(r.InDropped))
}

func (m *Model) status() string {
	var parts []string
	if m.Fault != "" {
		parts = append(parts, "no answer: "+clean(m.Fault))
	}
	if m.Waits != nil {
		if who := m.Waits(); who != "" {
			parts = append(parts, clean(who)+" (q quits)")
		}
	}
	if len(m.away) > 0 {
		parts = append(parts, "no answer from "+clean(strings.Join(m.away, ", ")))
	}
	if m.Paused {
		parts = append(parts, "paused (p)")
	}
	switch {
	case m.detail != nil:
		parts = append(parts, "Esc all ports  right next  left before  arrows scroll  ? help")
	case m.typing:
		parts = append(parts, "show only: "+clean(m.Filter)+"_")
	case m.Filter != "":
		parts = append(parts, "only "+clean(m.Filter)+" (Esc: all)")
	}
	if len(parts) == 0 {
		return "q quit  1-9 s r sort  / only some  Enter one  p pause  arrows scroll  ? help"
	}
	return strings.Join(parts, "   ")
}

// nameWidth returns the width of the longest name, within the window: numbers far from their name are hard to read.
func (m *Model) nameWidth() int {
	longest, numbers := m.longestName(), total(m.shown())
	return max(leastName, min(longest, m.Width-m.hostWidth()-numbers-lastWidth-2))
}

func (m *Model) longestName() (longest int) {
	for i := range m.rows {
		longest = max(longest, utf8.RuneCountInString(m.name(&m.rows[i])))
	}
	return longest
}

// leastName returns the width that names keep when columns are left out. With several hosts a name also has its switch
// more often, without which it says little.
func (m *Model) leastName() int {
	if !m.hosted {
		return leastName
	}
	return max(leastName, min(m.longestName(), mostName))
}

// mostName is how much of a name is kept for a column of numbers.
const mostName = 24

// hostWidth returns the width of the column of hosts with the space behind it, 0 where there is none.
func (m *Model) hostWidth() int {
	if !m.hosted {
		return 0
	}
	longest := len(headings[Host]) + 1 // for its arrow
	for i := range m.rows {
		longest = max(longest, utf8.RuneCountInString(clean(m.rows[i].Host)))
	}
	return min(longest, mostHost) + 2
}

// mostHost is how much of a host's name is shown.
const mostHost = 16

func (m *Model) name(r *Row) string {
	name := r.Port
	if m.several {
		name = r.Switch + "/" + r.Port
	}
	if r.Uplink {
		name += " ^"
	}
	return clean(name)
}

func (m *Model) heading() string {
	cells := headings
	mark := "↓"
	if m.Up != (m.Sort == Name || m.Sort == Host) {
		mark = "↑"
	}
	cells[m.Sort] += mark
	return m.join(cells, "PORT GROUP")
}

func (m *Model) join(cells [columns]string, group string) string {
	var b strings.Builder
	if n := m.hostWidth(); n > 0 {
		b.WriteString(fit(cells[Host], n-2, false) + "  ")
	}
	b.WriteString(fit(cells[Name], m.nameWidth(), false))
	for _, c := range m.shown() {
		b.WriteString(fit(cells[c], widths[c], true))
	}
	b.WriteString("  " + fit(cells[LastDrop], lastWidth, false))
	if m.wide() && m.grouped {
		b.WriteString("  " + fit(group, groupWidth, false))
	}
	return b.String()
}

func (m *Model) row(r *Row) string {
	cells := [columns]string{Name: m.name(r), Host: clean(r.Host)}
	for _, c := range m.shown() {
		cells[c] = stats.Short(r.value(c))
	}
	cells[LastDrop] = m.lastDrop(r.Last)
	return m.join(cells, clean(r.PortGroup))
}

// lastDrop returns the reason of the last drop and its age: "in forged-transmit 3s".
func (m *Model) lastDrop(d Drop) string {
	if d.Reason == "" {
		return "-"
	}
	way := "in "
	if d.Refused {
		way = "out "
	}
	if d.At.IsZero() {
		return way + d.Reason + " before"
	}
	return way + d.Reason + " " + period.Age(m.now.Sub(d.At))
}

// clean replaces characters that a terminal could interpret as commands.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return '?'
		}
		return r
	}, s)
}

// fit pads or cuts a text to the width of its column.
func fit(s string, width int, right bool) string {
	s = cut(s, width)
	pad := strings.Repeat(" ", width-utf8.RuneCountInString(s))
	if right {
		return pad + s
	}
	return s + pad
}

func cut(s string, width int) string {
	if utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:max(width, 0)])
}

// Batch writes the view as lines, for use without a terminal.
func (m *Model) Batch(w io.Writer) error {
	m.Width, m.Height = batchWidth, above+len(m.rows)
	if m.hosted {
		m.Width = hostsWidth
	}
	lines := m.Screen()
	for i, l := range lines {
		if i == 2 && m.Filter == "" && len(m.away) == 0 { // keys have no effect here
			continue
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(l.Text, " ")); err != nil {
			return err
		}
	}
	return nil
}

// batchWidth leaves 26 characters for a port's name.
const batchWidth = 120

// hostsWidth is the width with several hosts, where some columns are left out.
const hostsWidth = 100

// JSON writes the view as one line: the time, and the rows.
func (m *Model) JSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(struct {
		Time time.Time `json:"time"`
		Rows []Row     `json:"rows"`
		Away []string  `json:"away,omitempty"` // hosts that did not answer
	}{m.now, m.Rows(), m.away})
}
