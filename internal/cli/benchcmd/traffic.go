package benchcmd

import (
	"github.com/spf13/cobra"

	"heddle/internal/lab/traffic"
)

// NewTraffic returns one end of a measurement as a process. Benchmarks and labs start it; it is hidden, because people
// use those.
func NewTraffic() *cobra.Command {
	c := traffic.Command()
	c.Hidden = true
	return c
}
