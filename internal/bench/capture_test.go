package bench

import (
	"testing"
	"time"

	"heddle/internal/report"
	"heddle/internal/testkit"
	"heddle/internal/traffic"
)

func TestCaptureMeasuresEveryStateAndLeavesNothing(t *testing.T) {
	testkit.Root(t)
	testkit.Tool(t, "tcpdump")
	t.Setenv("TMPDIR", t.TempDir())
	rep, err := Capture(t.Context(), CaptureOptions{
		Rounds: 1, Warmup: 10 * time.Millisecond, Duration: 30 * time.Millisecond, Now: time.Now, Heddle: heddleProgram(t), measure: traffic.Measure,
	})
	if err != nil {
		t.Fatal(err)
	}
	measured := 0
	for _, row := range rep.Rows {
		if s, ok := row.Get("value").(report.Spread); !ok || s.Rounds != 1 || s.Median <= 0 {
			t.Errorf("%v, capture %v: %+v", row.Get("test"), row.Get("capture"), s)
		}
		if s, ok := row.Get("lost").(report.Spread); ok && s.Rounds == 1 {
			measured++
		}
	}
	if len(rep.Rows) != 4*len(captureStates()) || measured != 3*(len(captureStates())-1) {
		t.Errorf("%d rows, %d with what was lost", len(rep.Rows), measured)
	}
	leftNothing(t)
}
