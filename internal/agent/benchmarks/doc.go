// Package benchmarks is the host's part in benchmarks of the network between hosts (S109), which a controller begins:
// what this host sends and counts, and within which bounds.
//
//layout:floor=process
package benchmarks
