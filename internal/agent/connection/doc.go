// Package connection is the host's connection to the controllers of its cluster: who the host is there, the
// conversation that is under way, and what other parts of the agent ask a controller. The conversation runs beside the
// agent's loop; commands, and parts in the loop, ask how it stands.
//
//layout:floor=process
package connection
