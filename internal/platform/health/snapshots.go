package health

import (
	"fmt"
	"time"

	"heddle/internal/api"
)

// snapshots looks at those by schedule; where there is none, there is nothing to say.
func snapshots(s *api.ControllerStatus) []api.HealthFinding {
	const check = "snapshots"
	snap := s.Snapshots
	if snap == nil {
		return nil
	}
	text := "none was taken yet"
	if !snap.Last.IsZero() {
		text = fmt.Sprintf("%d in %s, the newest of %s", snap.Count, snap.Dir, snap.Last.UTC().Format(time.RFC3339))
	}
	old := s.Now.Sub(snap.Last) > 2*snap.Every
	switch {
	case snap.Problem != "" && old:
		return []api.HealthFinding{finding(check, api.HealthWrong, text+"; the last try failed: "+snap.Problem,
			"the controller tries again by itself once the reason is gone; \"heddle-controller snapshot FILE\" saves "+
				"the state elsewhere meanwhile")}
	case snap.Problem != "":
		return []api.HealthFinding{finding(check, api.HealthNote, text+"; the last try failed: "+snap.Problem, "")}
	case !snap.Last.IsZero() && old:
		return []api.HealthFinding{finding(check, api.HealthNote, text+": older than two intervals of "+
			snap.Every.String(), "see the controller's log")}
	}
	return []api.HealthFinding{fine(check, text)}
}
