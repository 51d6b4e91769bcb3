// Package period reads times as people write them on a command line, 5s, 2m, 1h30m, and 5 for five seconds, and writes
// ages.
//
//layout:floor=words pure
package period
