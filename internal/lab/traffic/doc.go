// Package traffic has the senders and sinks that measure a network path: TCP stream, request/response,
// connect/request/response, numbered packets at full or given rate, ICMP echo, and scans of closed ports. Each end runs
// in a network namespace, on a thread of its own, pinned to CPUs where asked; as goroutines of one process (Measure) or
// as a process per end (Processes).
//
// The ends use blocking sockets on a locked thread: a read or write is one system call, without the Go poller's
// wake-ups in the measured path, so that the numbers compare with those of tools written in C.
//
//layout:floor=workshop
package traffic
