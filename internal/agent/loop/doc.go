// Package loop is the one goroutine in which an agent changes its state, seen from those who want something done there,
// and what is logged there of errors that last.
//
//layout:floor=process
package loop
