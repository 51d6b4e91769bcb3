// Package bundle puts what belongs to a port into the message in which it travels from host to host (S79), and takes
// it out of one. What comes from another host is bounded and checked: that host may be of another version, or
// hostile. Pure.
//
//layout:floor=process
package bundle
