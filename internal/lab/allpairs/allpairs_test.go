package allpairs

import (
	"strings"
	"testing"
)

// What slow pairs share is named only where the others do not share it too.
func TestWhatSlowPairsShare(t *testing.T) {
	pair := func(from, to, fromUplink, toUplink string, rate float64) Pair {
		return Pair{From: from, To: to, FromUplink: fromUplink, ToUplink: toUplink, Stream: rate}
	}
	for name, c := range map[string]struct {
		pairs []Pair
		want  string
	}{
		"none": {[]Pair{pair("n1", "n2", "u1", "u2", 10), pair("n2", "n1", "u2", "u1", 8)}, "no pair has less"},
		"a sender": {[]Pair{pair("n1", "n2", "u1", "u2", 1), pair("n1", "n3", "u1", "u1", 1),
			pair("n2", "n1", "u2", "u1", 9), pair("n2", "n3", "u2", "u1", 9), pair("n3", "n1", "u1", "u1", 9),
			pair("n3", "n2", "u1", "u2", 9)}, "2 of 6 pairs have less than half of the median pair's throughput " +
			"(n1 to n2, n1 to n3); they come from n1"},
		"the same uplink": {[]Pair{pair("n1", "n3", "u1", "u1", 1), pair("n3", "n1", "u1", "u1", 1),
			pair("n1", "n2", "u1", "u2", 9), pair("n2", "n1", "u2", "u1", 9), pair("n3", "n2", "u1", "u2", 9),
			pair("n2", "n3", "u2", "u1", 9)}, "their two ports use the same uplink"},
		"nothing": {[]Pair{pair("n1", "n2", "u1", "u2", 1), pair("n2", "n3", "u2", "u1", 1),
			pair("n2", "n1", "u2", "u1", 9), pair("n1", "n3", "u1", "u1", 9), pair("n3", "n1", "u1", "u1", 9),
			pair("n3", "n2", "u1", "u2", 9)}, "they share no host and no uplink"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Measured{row: row{"x", 3, false}, Pairs: c.pairs}
			if got := m.slow(); len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}
