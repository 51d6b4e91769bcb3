package top

import (
	"fmt"
	"slices"

	"heddle/internal/api"
)

// detailName and detailNumber are the widths of a counter's name and of its number.
const (
	detailName   = 28
	detailNumber = 16
)

// open shows one port in place of the list: the first on the screen.
func (m *Model) open() {
	if rows := m.Rows(); len(rows) > 0 {
		r := &rows[max(0, min(m.offset, len(rows)-1))]
		k := r.key()
		m.detail, m.offset = &k, 0
	}
}

// detailKey processes a key while a single port is shown: the previous and the next port of the list, scrolling, and
// back.
func (m *Model) detailKey(key string) {
	switch key {
	case "escape", "\r", "\n":
		m.detail, m.offset = nil, 0
	case "left", "right":
		rows := m.Rows()
		i := slices.IndexFunc(rows, m.isOpen)
		step := map[string]int{"left": -1, "right": 1}[key]
		if n := i + step; i >= 0 && n >= 0 && n < len(rows) {
			k := rows[n].key()
			m.detail, m.offset = &k, 0
		}
	default:
		m.offset = max(0, scrolled(key, m.offset, max(1, m.body()-1), len(m.details())-m.body()))
	}
}

func (m *Model) isOpen(r Row) bool {
	return m.detail != nil && r.key() == *m.detail
}

// details returns the lines of the open port: every counter that is not zero, with what was dropped and refused by
// reason.
func (m *Model) details() []Line {
	i := slices.IndexFunc(m.rows, m.isOpen)
	s := m.before[m.detail.host][m.detail.Key]
	if i < 0 || s == nil {
		return []Line{{Text: fmt.Sprintf("%s is not there any more; Esc shows the list", clean(m.detail.Name))}}
	}
	r := &m.rows[i]
	lines := []Line{{Text: m.row(r), Loud: r.faulty()}, {}}
	if r.PortGroup != "" {
		lines = append(lines, Line{Text: "port group " + clean(r.PortGroup)}, Line{})
	}
	lines = append(lines, counted("COUNTER", slices.Concat(s.Counters, s.Extra))...)
	lines = append(lines, reasoned("FRAMES FROM IT, DROPPED FOR", s.Drops)...)
	lines = append(lines, reasoned("COPIES FOR IT, REFUSED FOR", s.Refused)...)
	show := "heddle port show "
	if r.Uplink {
		show = "heddle uplink show "
	}
	if r.Host != "" {
		show += "--host " + clean(r.Host) + " "
	}
	return append(lines, Line{}, Line{Text: "its policy and state: " + show + clean(r.Port) +
		"; a reason: heddle explain REASON"})
}

// counted returns a table of the counters that are not zero.
func counted(head string, all api.Counters) []Line {
	lines := []Line{{Text: fit(head, detailName, false), Head: true}}
	for _, c := range all {
		if c.Value > 0 {
			lines = append(lines, numbered(c.Name, c.Value))
		}
	}
	return lines
}

// reasoned returns a table of reasons, the most frequent first; nothing if there are none.
func reasoned(head string, all api.ReasonCounts) (lines []Line) {
	list := slices.Clone(all)
	slices.SortStableFunc(list, func(a, b api.ReasonNo) int {
		switch {
		case a.Value > b.Value:
			return -1
		case a.Value < b.Value:
			return 1
		}
		return 0
	})
	for _, r := range list {
		if r.Value > 0 {
			lines = append(lines, numbered(r.Reason, r.Value))
		}
	}
	if len(lines) > 0 {
		lines = append([]Line{{}, {Text: fit(head, detailName, false), Head: true}}, lines...)
	}
	return lines
}

func numbered(name string, n uint64) Line {
	return Line{Text: "  " + fit(clean(name), detailName, false) + fit(fmt.Sprint(n), detailNumber, true)}
}
