// Package contexts keeps which controllers a user talks to, and by what they know each other: a file of the user's own,
// as kubectl has one.
//
//layout:floor=verbs
package contexts
