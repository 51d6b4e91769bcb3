package hosts

import (
	"heddle/internal/agent/part"
	probes "heddle/internal/feature/probes/host"
)

// All are the parts, in the order in which they are made. A feature with a part in the agent has a line here.
func All() []part.Feature {
	return []part.Feature{probes.Feature()}
}
