package outage

import (
	"math"
	"slices"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/traffic"
)

// lane is when packets came in the round at hand, in seconds from what happened; where nothing happens, from when it
// would have.
func (m *measured) lane(p *traffic.Received, gap float64) report.Lane {
	since := func(ns int64) float64 { return time.Unix(0, ns).Sub(m.happened).Seconds() }
	if p.FirstAt == 0 || p.LongestGapAt == 0 {
		return report.Lane{Start: math.NaN()}
	}
	l := report.Lane{Start: since(p.FirstAt), From: since(p.LongestGapAt)}
	l.To = l.From + gap
	l.Start = min(l.Start, l.From)
	l.End = max(l.Start+duration.Seconds(), l.To)
	return l
}

// timeline shows of each row and direction the round whose gap is in the middle.
func timeline(all []*measured) report.Timeline {
	t := report.Timeline{Title: "The longest silence of the guest's packets, around the failure", Event: "it happens",
		From: -lead.Seconds(), To: duration.Seconds() - lead.Seconds()}
	for _, m := range all {
		for _, d := range []struct {
			name string
			direction
		}{{"from the guest", m.out}, {"to the guest", m.in}} {
			if l, ok := d.middle(); ok {
				l.Label = m.row.name + ", " + d.name
				t.Lanes = append(t.Lanes, l)
				t.From, t.To = min(t.From, l.Start), max(t.To, l.End)
			}
		}
	}
	return t
}

// middle is the lane of the round whose gap is the middle one.
func (d direction) middle() (report.Lane, bool) {
	list := slices.DeleteFunc(slices.Clone(d.when), func(l report.Lane) bool { return math.IsNaN(l.Start) })
	if len(list) == 0 {
		return report.Lane{}, false
	}
	slices.SortStableFunc(list, func(a, b report.Lane) int {
		switch gap := (a.To - a.From) - (b.To - b.From); {
		case gap < 0:
			return -1
		case gap > 0:
			return 1
		}
		return 0
	})
	return list[len(list)/2], true
}
