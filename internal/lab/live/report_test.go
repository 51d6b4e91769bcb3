package live

import (
	"strings"
	"testing"
)

func TestReport_DrawsTheLabAndSaysWhatItShows(t *testing.T) {
	r := Report([]Measured{{Row: row{name: "x"}, InForce: []float64{0.002}, Sent: 10, Lost: 1}}, 4)
	if len(r.Labs) != 1 || len(r.Conclusions) != 1 || !strings.Contains(r.Conclusions[0],
		"2.00 ms after the command has read its input at most") || !strings.Contains(r.Conclusions[0], "lost 1 of 10") {
		t.Errorf("%d pictures, %q", len(r.Labs), r.Conclusions)
	}
}
