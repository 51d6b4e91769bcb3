package health

import (
	"strings"
	"testing"
	"time"

	"heddle/internal/api"
)

// A rollout that waits for somebody is named, with what it found and what to do.
func TestRollouts_WhoWaitsIsNamed(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name   string
		open   OpenRollout
		nobody time.Duration
		level  api.HealthLevel
		says   []string
	}{
		{"running", OpenRollout{State: "running", Driven: true}, 0, api.HealthOK,
			[]string{"1 open, and none waits"}},
		{"its driver has just died", OpenRollout{State: "running", Driven: true}, 30 * time.Second, api.HealthOK, nil},
		{"without a driver", OpenRollout{State: "running", Driven: true}, 2 * time.Minute, api.HealthWrong,
			[]string{"rollout r7 stands still: no controller has driven it for 2m0s"}},
		{"halted", OpenRollout{State: "halted", Since: now.Add(-time.Minute), Found: "host esx1: it is not connected"},
			time.Hour, api.HealthWrong, []string{"is halted after 1 of 3 stages, since 2026-11-28 11:59:00: " +
				"host esx1: it is not connected", "heddle rollout resume r7"}},
		{"paused just now", OpenRollout{State: "paused", Since: now.Add(-time.Hour)}, 0, api.HealthOK, nil},
		{"forgotten", OpenRollout{State: "paused", Since: now.Add(-25 * time.Hour)}, 0, api.HealthNote,
			[]string{"rollout r7 of eve is paused after 1 of 3 stages, since 2026-11-27", "heddle rollout show r7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.open.ID, c.open.Who, c.open.Begun, c.open.Stages = "r7", "eve", 1, 3
			found := Rollouts([]OpenRollout{c.open}, c.nobody, now)
			if len(found) != 1 || found[0].Level != c.level {
				t.Fatalf("it says %+v, want level %s", found, c.level)
			}
			for _, says := range c.says {
				if text := found[0].Text + "; " + found[0].Remedy; !strings.Contains(text, says) {
					t.Errorf("it says %q, want %q", text, says)
				}
			}
		})
	}
	if found := Rollouts(nil, time.Hour, now); len(found) != 1 || found[0].Level != api.HealthOK {
		t.Errorf("without a rollout it says %+v", found)
	}
}
