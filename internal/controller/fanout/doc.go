// Package fanout asks all other controllers about hosts, and makes one of what they say and of what this controller has
// heard of a host itself. Its answers are values.
//
//layout:floor=process
package fanout
