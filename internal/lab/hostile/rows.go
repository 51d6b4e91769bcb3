package hostile

import (
	"heddle/internal/lab/experiment"
	"heddle/internal/lab/traffic"
)

// row is one kind of flood, with storm control on the neighbour's port or without.
type row struct {
	name             string
	flood            traffic.FloodKind
	minSize, maxSize int
	limited          bool
	// held: against the budgets of throughput and round-trip time.
	held bool
	// bounded: what goes to many is all that passes, and storm control bounds it.
	bounded bool
}

// rows: a flood from random sources sends to one receiver and is stopped by the learning limit; storm control has no
// part in it.
func rows() []row {
	return []row{
		{name: "random-source", flood: traffic.RandomSource, minSize: 60, maxSize: 60, held: true},
		{name: "random-bytes", flood: traffic.RandomBytes, minSize: 60, maxSize: 1514},
		{name: "random-bytes-limited", flood: traffic.RandomBytes, minSize: 60, maxSize: 1514, limited: true,
			held: true},
		{name: "broadcast", flood: traffic.BroadcastStorm, minSize: 60, maxSize: 60},
		{name: "broadcast-limited", flood: traffic.BroadcastStorm, minSize: 60, maxSize: 60, limited: true, held: true,
			bounded: true},
		{name: "unknown-unicast", flood: traffic.UnknownUnicast, minSize: 60, maxSize: 60},
		{name: "unknown-unicast-limited", flood: traffic.UnknownUnicast, minSize: 60, maxSize: 60, limited: true,
			held: true, bounded: true},
	}
}

// chosen finds rows by name; without names it is all of them.
func chosen(names []string) ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, names)
}

// Check says whether the rows selected exist.
func (o Options) Check() error {
	_, err := chosen(o.Rows)
	return err
}

// RowNames are the names of the experiment's rows.
func RowNames() []string { return experiment.RowNames(rows(), func(r row) string { return r.name }) }
