// Package benchmark says how all hosts of a fleet send to one another at once, and what follows from what arrived. It
// is pure: frames, time and the hosts' answers come from the caller.
//
//layout:floor=kinds pure
package benchmark
