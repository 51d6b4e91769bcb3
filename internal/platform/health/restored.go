package health

import (
	"fmt"

	"heddle/internal/api"
)

// NotConfirmed says that hosts and tokens of a snapshot wait until somebody confirms that they still count.
func NotConfirmed[T any](waiting []T) []api.HealthFinding {
	if len(waiting) == 0 {
		return nil
	}
	return []api.HealthFinding{finding("restored", api.HealthWrong, fmt.Sprintf("%d hosts and tokens of the snapshot "+
		"from which the state was restored count for nothing yet", len(waiting)), "look at them, and confirm those "+
		"that were not taken out after the snapshot was made (heddle-controller confirm)")}
}
