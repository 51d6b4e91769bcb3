// Package loadbalance decides which ports of a switch move to another uplink because theirs is loaded (S47, S48). It is
// pure: counters and times come from the caller.
//
//layout:floor=network pure
package loadbalance
