// Package benchcmd has "heddle bench" and the traffic generator that benches start.
//
//layout:floor=verbs
package benchcmd
