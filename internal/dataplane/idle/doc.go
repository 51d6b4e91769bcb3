// Package idle keeps something that is costly to make from one use to the next, for a while.
//
//layout:floor=kernel pure
package idle
