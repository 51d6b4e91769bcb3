// Package hostwords bounds what hosts say in words, and how many lines of the log are about it.
//
//layout:floor=process pure
package hostwords
