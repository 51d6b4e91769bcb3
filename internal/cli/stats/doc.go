// Package stats has "heddle stats": counters, rates, and where each frame of a port went.
//
//layout:floor=verbs
package stats
