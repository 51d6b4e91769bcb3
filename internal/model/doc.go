// Package model interprets a plan: what a switch does to a frame, in plain Go. It is the specification of the kernel
// program. It was written from docs/reference/frame-rules.md alone, without regard to the program's tables. A frame
// passes the stages of the files admit, classify, learn, lookup, receivers, rules and deliver, in this order; the
// number of a statement (S…, D…) of behaviour.md is beside the line that makes it true.
//
//layout:floor=answers pure
package model
