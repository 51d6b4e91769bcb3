// Package adopt decides which changes that could cut the host off are undone automatically (S81): it has the journal
// that survives a crash, and the rules for undoing a change. Such a change is a move of the host's own addresses from
// an uplink's device to a host port, in steps that each have an inverse, or any change of the configuration that
// affects the path to those addresses. The package decides; a Host carries the decision out.
//
//layout:floor=process
package adopt
