package health

import (
	"testing"
	"time"

	"heddle/internal/api"
)

func TestSnapshots_AnOldOneIsWrongWhereTheLastFailed(t *testing.T) {
	now := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		last    time.Time
		problem string
		want    api.HealthLevel
	}{
		"new":             {now.Add(-time.Hour), "", api.HealthOK},
		"failed once":     {now.Add(-time.Hour), "no space", api.HealthNote},
		"failed for long": {now.Add(-3 * time.Hour), "no space", api.HealthWrong},
		"never worked":    {time.Time{}, "no space", api.HealthWrong},
		"late":            {now.Add(-3 * time.Hour), "", api.HealthNote},
		"not yet":         {time.Time{}, "", api.HealthOK},
	} {
		got := snapshots(&api.ControllerStatus{Now: now, Snapshots: &api.SnapshotState{Every: time.Hour, Last: c.last,
			Problem: c.problem}})
		if len(got) != 1 || got[0].Level != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := snapshots(&api.ControllerStatus{Now: now}); got != nil {
		t.Errorf("without a schedule: %+v", got)
	}
}
