// Package issuing says whether a controller may make certificates: not where its clock is so far from those of other
// controllers, or of hosts, that one of them is wrong.
//
//layout:floor=platform
package issuing
