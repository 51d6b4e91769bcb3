package hostile

import (
	"strings"
	"testing"
)

func TestReport_DrawsTheLabAndSaysWhatItShows(t *testing.T) {
	two := side{Throughput: []float64{2}, RTT: []float64{2}}
	one := side{Throughput: []float64{1.9}, RTT: []float64{2.1}}
	r := Report([]Measured{{Row: row{name: "x", held: true}, Hostile: one, Good: two}, {Row: row{name: "y"}}})
	if len(r.Labs) != 1 || len(r.Conclusions) != 1 ||
		!strings.Contains(r.Conclusions[0], "keep at least 0.950 of the throughput") ||
		!strings.Contains(r.Conclusions[0], "at most 1.050 times as long, by the middle of the rounds of 1 rows") {
		t.Errorf("%d pictures, %q", len(r.Labs), r.Conclusions)
	}
	if r := Report(nil); len(r.Conclusions) != 0 {
		t.Errorf("of nothing: %q", r.Conclusions)
	}
}
