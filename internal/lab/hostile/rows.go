package hostile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

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

// rows: a flood from random sources sends to one receiver and is stopped by the learning limit; storm control has no part in it.
func rows() []row {
	return []row{
		{name: "random-source", flood: traffic.RandomSource, minSize: 60, maxSize: 60, held: true},
		{name: "random-bytes", flood: traffic.RandomBytes, minSize: 60, maxSize: 1514},
		{name: "random-bytes-limited", flood: traffic.RandomBytes, minSize: 60, maxSize: 1514, limited: true, held: true},
		{name: "broadcast", flood: traffic.BroadcastStorm, minSize: 60, maxSize: 60},
		{name: "broadcast-limited", flood: traffic.BroadcastStorm, minSize: 60, maxSize: 60, limited: true, held: true, bounded: true},
		{name: "unknown-unicast", flood: traffic.UnknownUnicast, minSize: 60, maxSize: 60},
		{name: "unknown-unicast-limited", flood: traffic.UnknownUnicast, minSize: 60, maxSize: 60, limited: true, held: true, bounded: true},
	}
}

// ErrUnknown is wrapped when there is no row of that name.
var ErrUnknown = errors.New("unknown name")

// chosen finds rows by name; without names it is all of them.
func chosen(names []string) ([]row, error) {
	all := rows()
	if len(names) == 0 {
		return all, nil
	}
	var out []row
	var known []string
	for _, r := range all {
		known = append(known, r.name)
	}
	for _, n := range names {
		i := slices.Index(known, n)
		if i < 0 {
			return nil, fmt.Errorf("%w: experiment %q has no row %q; there are %s", ErrUnknown, Name, n, strings.Join(known, ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// Check says whether the rows selected exist.
func (o Options) Check() error {
	_, err := chosen(o.Rows)
	return err
}
