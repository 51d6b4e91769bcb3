package features

import (
	"heddle/internal/controller/capability"
	staticports "heddle/internal/feature/staticports/fleet"
)

// List is those features, in the order in which they are called.
func List() capability.List {
	return capability.List{staticports.Capability()}
}
