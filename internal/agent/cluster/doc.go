// Package cluster is a host's conversation with the controllers of its cluster: it takes the slice that they hand the
// host, says what became of it, and reports what the host has. It only ever adds to what the host does by itself: while
// no controller answers, the host goes on by what it has.
//
//layout:floor=process
package cluster
