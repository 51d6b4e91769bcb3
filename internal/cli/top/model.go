package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"heddle/internal/abi"
	"heddle/internal/api"
	"heddle/internal/diagnose/reasons"
	"heddle/internal/diagnose/stats"
)

// Column is a column of the view, by which ports can be sorted.
type Column int

// The columns, in their order; the first has the key 1.
const (
	Name Column = iota
	BitsIn
	BitsOut
	PacketsIn
	PacketsOut
	ToMany // broadcast, multicast and unknown unicast that the port sent
	DropRate
	Drops
	LastDrop
	Unknown // unicast for unknown destinations that the port sent: a part of ToMany
	Host    // of the ports of several hosts
	columns
)

// words are the values of --sort for the columns.
var words = [columns]string{"port", "in-bits", "out-bits", "in-packets", "out-packets", "broadcast", "drop-rate",
	"drops", "last-drop", "unknown", "host"}

// Columns returns the words of the columns.
func Columns() []string { return slices.Clone(words[:]) }

// ColumnOf finds a column by its word.
func ColumnOf(word string) (Column, bool) {
	i := slices.Index(words[:], word)
	return Column(i), i >= 0
}

// Row is one port or uplink.
type Row struct {
	// Host is "" where one host is shown.
	Host string `json:"host,omitempty"`
	stats.Line
	// Last is the last drop seen since the view began or, before the first, the most frequent one until then; its
	// Reason is "" if nothing was dropped.
	Last Drop `json:"lastDrop,omitzero"`

	speed uint64 // of an uplink, in bits per second
}

// key identifies a port among the ports of all hosts.
type key struct {
	host string
	stats.Key
}

func (r *Row) key() key { return key{r.Host, stats.Key{Switch: r.Switch, Name: r.Port}} }

// Reading is a reading of all counters.
type Reading struct {
	Hosts []HostStats
	// Away names the hosts that did not answer.
	Away []string
}

// HostStats are the counters of one host; its name is "" where one host is shown.
type HostStats struct {
	Host  string
	Stats []api.Stats
}

// Drop says when frames were dropped, or copies refused, and why: the most frequent reason in that interval.
type Drop struct {
	Reason string `json:"reason"`
	// Refused: copies for this port; otherwise frames from it.
	Refused bool      `json:"refused,omitempty"`
	Count   uint64    `json:"count"`
	At      time.Time `json:"at,omitzero"` // zero: before the view began
}

// Model is the state of a view.
type Model struct {
	// Title names the agent whose ports are shown.
	Title string
	// Interval is the time between two readings.
	Interval time.Duration
	Sort     Column
	// Up: ascending order.
	Up     bool
	Filter string
	Paused bool
	// Width and Height are the terminal's, in characters.
	Width, Height int
	// Fault is why there was no new reading.
	Fault string
	// Waits says who is waited for; nil for a view that does not.
	Waits func() string

	typing  bool // the filter is being typed
	help    bool // the keys are shown instead of the ports
	detail  *key // the port that is shown in detail; nil: the list
	offset  int  // index of the first visible row
	now     time.Time
	rows    []Row                    // all ports, in the agent's order
	before  map[string]stats.Reading // by host
	last    map[key]Drop
	several bool // several switches
	grouped bool // some port has a port group
	hosted  bool // the ports are of several hosts
	away    []string
	links   []link
}

// Update processes a reading of one host that was made at that time.
func (m *Model) Update(all []api.Stats, now time.Time) {
	m.UpdateHosts(Reading{Hosts: []HostStats{{Stats: all}}}, now)
}

// UpdateHosts processes a reading that was made at that time.
func (m *Model) UpdateHosts(r Reading, now time.Time) {
	m.now, m.Fault, m.away = now, "", r.Away
	m.rows, m.several, m.grouped, m.hosted, m.links = nil, false, false, false, nil
	before, last := make(map[string]stats.Reading, len(r.Hosts)), map[key]Drop{}
	for _, h := range r.Hosts {
		m.add(h, last)
		before[h.Host] = stats.Read(h.Stats)
	}
	m.before, m.last = before, last
	for i := range m.rows {
		if u, ok := linkOf(m.rows[i].speed, &m.rows[i]); ok {
			m.links = append(m.links, u)
		}
	}
	if m.hosted { // those of all hosts are too many: the busiest
		m.links = slices.DeleteFunc(m.links, func(u link) bool { return u.percent < 1 })
		slices.SortStableFunc(m.links, func(a, b link) int { return cmp.Compare(b.percent, a.percent) })
		m.links = m.links[:min(len(m.links), mostLinks)]
	}
}

// mostLinks is how many uplinks of several hosts are shown with their use.
const mostLinks = 3

// add adds the ports of a host, and to last what was dropped there last.
func (m *Model) add(h HostStats, last map[key]Drop) {
	lines, before := stats.Lines(m.before[h.Host], h.Stats), m.before[h.Host]
	for i, l := range lines {
		row := Row{Host: h.Host, Line: l, speed: h.Stats[i].Speed}
		k := row.key()
		drop, known := m.last[k]
		if d, dropped := newest(before[k.Key], &h.Stats[i], m.now); dropped {
			drop, known = d, true
		}
		if known {
			last[k] = drop
		}
		row.Last = drop
		m.rows = append(m.rows, row)
		m.several, m.grouped = m.several || l.Switch != m.rows[0].Switch, m.grouped || l.PortGroup != ""
		m.hosted = m.hosted || h.Host != ""
	}
}

// newest returns the most frequent drop, or refusal, between two readings; for the first reading the most frequent
// until then.
func newest(before, now *api.Stats, at time.Time) (d Drop, dropped bool) {
	if before == nil {
		before, at = &api.Stats{}, time.Time{}
	}
	look := func(was, is []api.ReasonNo, refused bool) { // a refusal by design is not shown as a drop
		old := make(map[string]uint64, len(was))
		for _, r := range was {
			old[r.Reason] = r.Value
		}
		for _, r := range is {
			if why, ok := abi.ParseReason(r.Reason); ok && reasons.ByDesign(why, now.Uplink) {
				continue
			}
			if o := old[r.Reason]; r.Value > o && r.Value-o > d.Count {
				d, dropped = Drop{Reason: r.Reason, Refused: refused, Count: r.Value - o, At: at}, true
			}
		}
	}
	look(before.Drops, now.Drops, false)
	look(before.Refused, now.Refused, true)
	return d, dropped
}

// Rated reports whether there are rates, which need two readings.
func (m *Model) Rated() bool {
	return slices.ContainsFunc(m.rows, func(r Row) bool { return r.Rates != nil })
}

// Rows returns the ports that match the filter, in order.
func (m *Model) Rows() []Row {
	out := make([]Row, 0, len(m.rows))
	want := strings.ToLower(m.Filter)
	for _, r := range m.rows {
		if strings.Contains(strings.ToLower(r.Host+":"+r.Switch+"/"+r.Port+" "+r.PortGroup+" "+r.Last.Reason), want) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Row) int {
		n := m.compare(a, b)
		if m.Up == (m.Sort == Name || m.Sort == Host) { // names sort from A to Z, numbers in descending order
			n = -n
		}
		if n == 0 {
			n = natural(a, b)
		}
		return n
	})
	return out
}

func natural(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Host, b.Host))
}

// compare returns a negative number if a comes first.
func (m *Model) compare(a, b Row) int {
	if m.Sort == Name {
		return natural(a, b)
	}
	if m.Sort == Host {
		return cmp.Or(cmp.Compare(a.Host, b.Host), natural(a, b))
	}
	if m.Sort == LastDrop {
		return a.Last.At.Compare(b.Last.At)
	}
	return cmp.Compare(a.value(m.Sort), b.value(m.Sort))
}

// faulty reports whether the port itself causes trouble: frames that it sent are dropped, or it floods. Copies that
// were delivered to it or refused are no fault of its own; nor are an uplink's frames, which may be copies of what a
// port here has sent.
func (r *Row) faulty() bool {
	return r.Rates != nil && (r.Rates.InDropped > 0 || !r.Uplink && r.Rates.Floods())
}

// value returns a number of the row; below 0 if it is not known.
func (r *Row) value(c Column) float64 {
	if c == Drops {
		return float64(r.Counts.InDropped + r.Counts.OutDropped)
	}
	if r.Rates == nil {
		return -1
	}
	switch c {
	case BitsIn:
		return 8 * r.Rates.BytesIn
	case BitsOut:
		return 8 * r.Rates.BytesOut
	case PacketsIn:
		return r.Rates.PacketsIn
	case PacketsOut:
		return r.Rates.PacketsOut
	case ToMany:
		return r.Rates.ToMany()
	case Unknown:
		return r.Rates.UnknownIn
	}
	return r.Rates.InDropped + r.Rates.OutDropped
}

// link is how much of an uplink's speed is used.
type link struct {
	row     *Row
	percent float64 // in the busier direction
}

// linkOf returns the link of an uplink whose speed is known and that has rates.
func linkOf(speed uint64, r *Row) (link, bool) {
	if speed == 0 || r.Rates == nil {
		return link{}, false
	}
	return link{r, 100 * 8 * max(r.Rates.BytesIn, r.Rates.BytesOut) / float64(speed)}, true
}
