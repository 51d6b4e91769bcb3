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

// Each pair is in each matrix of its row, and marked where the text says so.
func TestTheMatricesOfARow(t *testing.T) {
	m := Measured{row: row{"mac-learning-2", 2, false}, Pairs: []Pair{
		{From: "n1", To: "n2", FromUplink: "u1", ToUplink: "u2", Stream: 2e9, P99: 0.002, Pings: 10, Replies: 10},
		{From: "n2", To: "n1", FromUplink: "u2", ToUplink: "u1", Stream: 5e8, P99: 0.01, Pings: 10, Lost: 2,
			Replies: 11}}}
	all := m.pictures()
	if len(all) != 4 {
		t.Fatalf("%d matrices", len(all))
	}
	for i, want := range []struct {
		there, back string
		marked      bool
	}{{"2.00 Gb/s", "500 Mb/s", true}, {"2.00 ms", "10.0 ms", false}, {"0", "2", true}, {"0", "3", true}} {
		t.Run(all[i].Title, func(t *testing.T) {
			c := all[i].Cells
			if c[0][0] != nil || c[1][1] != nil || c[0][1].Text != want.there || c[1][0].Text != want.back ||
				c[0][1].Marked || c[1][0].Marked != want.marked ||
				!strings.Contains(c[1][0].Tip, "n2 (u2) to n1 (u1)") ||
				max(c[0][1].Shade, c[1][0].Shade) != 1 {
				t.Errorf("%+v, %+v", c[0][1], c[1][0])
			}
		})
	}
}
