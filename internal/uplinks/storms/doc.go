// Package storms finds storms of the physical network in the counters of uplinks: far more broadcasts than any network
// in order has. It is pure: counters and time come from the caller.
//
//layout:floor=network pure
package storms
