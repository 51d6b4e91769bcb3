package outage

import (
	"testing"
	"time"

	"heddle/internal/lab/report"
	"heddle/internal/lab/report/topology"
	"heddle/internal/lab/traffic"
)

func TestTheTimeline_ShowsTheRoundInTheMiddleFromWhatHappened(t *testing.T) {
	m := &measured{row: row{name: "link-down", out: true}, happened: time.Unix(100, 0)}
	for _, ms := range []int64{30, 5, 10} {
		p := &traffic.Received{FirstAt: m.happened.Add(-150 * time.Millisecond).UnixNano(),
			LongestGapAt: m.happened.Add(time.Duration(ms) * time.Millisecond).UnixNano()}
		m.out.when = append(m.out.when, m.lane(p, float64(ms)/1000))
	}
	m.out.when = append(m.out.when, m.lane(&traffic.Received{}, 0)) // nothing came
	line := timeline([]*measured{m})
	want := report.Lane{Label: "link-down, from the guest", Start: -0.15, From: 0.01, To: 0.02,
		End: -0.15 + duration.Seconds()}
	if len(line.Lanes) != 1 || line.Lanes[0] != want || line.From > -0.15 || line.To < want.End {
		t.Errorf("%+v, want %+v", line, want)
	}
}

func TestConclusions_SayTheLongestOfTheMiddles(t *testing.T) {
	all := []*measured{
		{row: row{name: "baseline"}, out: direction{gap: []float64{0.001}}, in: direction{gap: []float64{0.002}}},
		{row: row{name: "link-down", held: true}, out: direction{gap: []float64{0.001, 0.004, 0.09}}},
	}
	const want = "When an uplink failed or came back, the guest's traffic was silent for at most 4.00 ms, by the " +
		"middle of the rounds of each row; the machine's own unrest, with nothing happening, is 2.00 ms."
	if got := conclusions(all); len(got) != 1 || got[0] != want {
		t.Errorf("%q", got)
	}
	if got := conclusions(all[:1]); len(got) != 0 {
		t.Errorf("without a failure: %q", got)
	}
}

func TestTheLabsAreDrawn(t *testing.T) {
	for name, text := range map[string]string{"failover": labText(""), "teaming": teamingText("originating-port")} {
		t.Run(name, func(t *testing.T) {
			if list := topology.OfText(text); len(list) != 1 || list[0].SVG == "" {
				t.Errorf("%d pictures", len(list))
			}
		})
	}
}
