// Package live is the experiment "live-change": it changes the policy of ports with a numbered stream between them, on
// a host with a great many ports, and measures when each change was active, what the stream lost, and what still
// reached the old segment.
//
//layout:floor=workshop
package live
