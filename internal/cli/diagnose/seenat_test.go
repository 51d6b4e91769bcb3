package diagnose

import (
	"testing"
	"time"

	"heddle/internal/api"
)

func TestAdvise_SaysWhenAFindingWasSeen(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.Local)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for want, f := range map[string]api.Finding{
		"now":                         {Now: true, LastSeen: now},
		"now, since 11:50:00":         {Now: true, LastSeen: now, FirstSeen: ago(10 * time.Minute)},
		"last 11:59:15 (45s ago)":     {LastSeen: ago(45 * time.Second)},
		"last 11:58:30 (1m30s ago)":   {LastSeen: ago(90 * time.Second), FirstSeen: ago(90 * time.Second)},
		"before the agent kept dates": {Undated: true},
		"":                            {},
		"last 08:40:00 (3h20m ago), first 2026-03-01 12:00:00": {LastSeen: ago(200 * time.Minute),
			FirstSeen: ago(72 * time.Hour)},
	} {
		t.Run(want, func(t *testing.T) {
			if got := seenText(&f, now); got != want {
				t.Errorf("%q", got)
			}
		})
	}
}
