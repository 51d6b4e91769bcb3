package migration

import (
	"fmt"
	"math"

	"heddle/internal/lab/report"
)

// never says in how many moves the bulk transfer did not get its rate back while it was looked at.
func (m *measured) never() []string {
	n := 0
	for _, back := range m.each(func(x *move) float64 { return x.bulk }) {
		if math.IsNaN(back) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Row %s: in %d of %d moves the bulk transfer did not have its rate again for %v "+
		"before the next move was prepared.", m.row.name, n, len(m.moves), backFor)}
}

// timedOut says in which moves the bulk transfer waited for TCP's retransmission timer, which runs for 200 ms at least.
func (m *measured) timedOut() []string {
	n, with, without := 0, 0.0, 0.0
	for i := range m.moves {
		x := &m.moves[i]
		switch {
		case math.IsNaN(x.bulk):
		case x.timeouts > 0:
			n, with = n+1, max(with, x.bulk)
		default:
			without = max(without, x.bulk)
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Row %s: in %d of %d moves the retransmission timer of the bulk transfer's sender ran "+
		"out, and it was back after %s at most; in the others after %s at most. %d segments were sent again in all.",
		m.row.name, n, len(m.moves), report.Seconds.Format(with), report.Seconds.Format(without),
		m.sum(func(x *move) uint64 { return x.resent }))}
}
