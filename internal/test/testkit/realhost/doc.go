// Package realhost is a host for tests: a network namespace, or the machine's own, with the real heddle program and its
// agent.
//
//layout:floor=top
package realhost
