// Package roles is what people and tools may do: which role has which permissions, for which part of the cluster it was
// granted to whom, and whether a set of grants allows something. It is pure.
//
//layout:floor=platform pure
package roles
