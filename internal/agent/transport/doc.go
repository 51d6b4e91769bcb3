// Package transport is how two hosts of a cluster talk about ports that move from one to the other: the listener of the
// target, which is open while moves are under way, and the caller at the source. Each side proves by its host's
// certificate that it is the host that a controller has named to the other one.
//
//layout:floor=process
package transport
