// Package members answers people and controllers about the controllers of a cluster: one joins, one is taken out, how
// they stand, and the whole database as a snapshot.
//
//layout:floor=platform
package members
