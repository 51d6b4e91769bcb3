package health

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"heddle/internal/api"
)

// Bounds of what is said about rollouts.
const (
	// forgotten is for how long one may be paused without a word.
	forgotten = 24 * time.Hour
	// leaderless is for how long nobody may drive one: another controller takes over within seconds.
	leaderless = time.Minute
)

// OpenRollout is a change in stages that has not ended.
type OpenRollout struct {
	ID, State, Who string
	// Driven: a controller has to do something for it. Since is when it was paused or halted; zero where that is not
	// known.
	Driven bool
	Since  time.Time
	// Found is the first of what it found.
	Found string
	// Begun of Stages have begun.
	Begun, Stages int
}

// Rollouts says which changes in stages wait for somebody; nobody is for how long no controller is seen to drive them.
func Rollouts(open []OpenRollout, nobody time.Duration, now time.Time) (found []api.HealthFinding) {
	const check = "rollouts"
	slices.SortFunc(open, func(a, b OpenRollout) int { return cmp.Compare(a.ID, b.ID) })
	for _, r := range open {
		text := fmt.Sprintf("rollout %s of %s is %s after %d of %d stages", r.ID, r.Who, r.State, r.Begun, r.Stages)
		if !r.Since.IsZero() {
			text += ", since " + r.Since.UTC().Format(time.DateTime)
		}
		way := fmt.Sprintf("heddle rollout show %s, then heddle rollout resume %s or abort %s; until then no other "+
			"change of its switches is taken", r.ID, r.ID, r.ID)
		switch {
		case r.State == string(api.RolloutHalted):
			if r.Found != "" {
				text += ": " + r.Found
			}
			found = append(found, finding(check, api.HealthWrong, text, way))
		case r.State == string(api.RolloutPaused) && now.Sub(r.Since) > forgotten:
			found = append(found, finding(check, api.HealthNote, text, way))
		case r.Driven && nobody > leaderless:
			found = append(found, finding(check, api.HealthWrong, fmt.Sprintf("rollout %s stands still: no controller "+
				"has driven it for %s", r.ID, nobody.Round(time.Second)), "see the check of the store: who drives "+
				"has to write there; hosts go on by what they have meanwhile"))
		}
	}
	if len(found) == 0 {
		found = append(found, fine(check, fmt.Sprintf("%d open, and none waits for somebody", len(open))))
	}
	return found
}
