// Package uplinks does what happens at uplinks in addition to the frames of guests: LACP, LLDP and beacons with the
// physical network, and the balancing of load. Each part has goroutines of its own; it reports its results in the
// agent's loop.
//
//layout:floor=network
package uplinks
