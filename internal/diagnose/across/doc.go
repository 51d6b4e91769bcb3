// Package across joins what two hosts say of a frame into one story: the host of the sender says by which uplink and
// with which tag it leaves, the host of the receiver what becomes of it when it comes in at its uplinks. What the
// physical network between them does is not known. Pure.
//
//layout:floor=kernel pure
package across
