// Package driving is how a controller drives a rollout: it looks at the hosts, has the next stage begin, and halts or
// takes back what goes wrong. It reaches the hosts and the store through what it is given. All that it does is a
// replacement of the rollout as it was read: of two drivers one is told, and one that dies leaves nothing half done.
//
//layout:floor=process pure
package driving
