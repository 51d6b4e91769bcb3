package bench

import (
	"testing"
	"time"

	"heddle/internal/test/testkit"
)

// The benchmark's frames take the intended path: Frame fails if one is dropped or refused.
func TestFrameMeasuresWhatItSays(t *testing.T) {
	testkit.Long(t, "measures every kind of frame; TestEveryPeerCarriesTraffic has this bench's lab")
	testkit.Root(t)
	testkit.Weigh(t, 3)
	rep, err := Frame(t.Context(), FrameOptions{Rounds: 1, Quick: true, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rep.Rows {
		t.Log(row.Get("frame"), row.Get("time"))
	}
	if len(rep.Rows) != 23 || len(rep.Budgets) != 5 {
		t.Errorf("%d rows, %d budgets", len(rep.Rows), len(rep.Budgets))
	}
}
