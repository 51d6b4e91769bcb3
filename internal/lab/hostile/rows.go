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
	// held: the budgets of throughput and round-trip time apply.
	held bool
	// bounded: only frames with many receivers pass, and storm control limits them.
	bounded bool
}

// rows: a flood from random sources sends to one receiver, and the learning limit stops it; storm control does not
// apply to it.
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

// chosen finds rows by name; without names it is all rows.
func chosen(names []string) ([]row, error) {
	return experiment.Pick(Name, rows(), func(r row) string { return r.name }, names)
}

// Check says whether the selected rows exist.
func (o Options) Check() error {
	_, err := chosen(o.Rows)
	return err
}

// RowNames are the names of the experiment's rows.
func RowNames() []string { return experiment.RowNames(rows(), func(r row) string { return r.name }) }
