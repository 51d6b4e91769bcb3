package audit

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Query selects entries; what is empty selects all.
type Query struct {
	Since, Until time.Time
	// Who, Call, Object and From are parts of what the entry has, in small or capital letters.
	Who, Call, Object, From string
	Result                  Result
	// Most is how many entries there are at most: the newest.
	Most int
}

// fits reports whether an entry is selected.
func (q Query) fits(e *Entry) bool {
	return (q.Since.IsZero() || !e.At.Before(q.Since)) && (q.Until.IsZero() || e.At.Before(q.Until)) &&
		has(e.Who, q.Who) && has(e.Call, q.Call) && has(e.From, q.From) && (q.Result == "" || e.Result == q.Result) &&
		(q.Object == "" || slices.ContainsFunc(e.Objects, func(o string) bool { return has(o, q.Object) }))
}

func has(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// Found is what a query gives.
type Found struct {
	// Entries, the oldest first.
	Entries []Entry
	// More is how many older entries were selected, and left out by Most.
	More int
	// Damaged is how many lines of the files can't be read.
	Damaged int
}

// List gives the entries of a query, in order.
func (l *Log) List(q Query) (*Found, error) {
	c := &collector{Query: q, open: map[int64]*Entry{}, found: &Found{}}
	for _, s := range l.all() {
		paths, err := s.paths()
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			damaged, err := read(p, c.take)
			if err != nil {
				return nil, err
			}
			c.found.Damaged += damaged
		}
	}
	for _, e := range c.open {
		c.add(e)
	}
	c.trim()
	return c.found, nil
}

// collector puts the beginnings and the ends of calls together.
type collector struct {
	Query
	open  map[int64]*Entry
	found *Found
}

func (c *collector) take(e Entry) {
	begun := c.open[e.Number]
	switch {
	case e.Result == Begun:
		c.open[e.Number] = &e
	case begun == nil && e.Result == Refused: // before it began
		c.add(&e)
	case begun == nil: // its beginning was removed for age
		e.Ended = e.At
		c.add(&e)
	default:
		delete(c.open, e.Number)
		begun.Ended, begun.Result, begun.Error = e.At, e.Result, e.Error
		begun.Objects = append(begun.Objects, e.Objects...)
		c.add(begun)
	}
}

func (c *collector) add(e *Entry) {
	if !c.fits(e) {
		return
	}
	c.found.Entries = append(c.found.Entries, *e)
	if c.Most > 0 && len(c.found.Entries) >= 2*c.Most+64 {
		c.trim()
	}
}

func (c *collector) trim() {
	slices.SortFunc(c.found.Entries, func(a, b Entry) int { return cmp.Compare(a.Number, b.Number) })
	if over := len(c.found.Entries) - c.Most; c.Most > 0 && over > 0 {
		c.found.Entries = slices.Clone(c.found.Entries[over:])
		c.found.More += over
	}
}
