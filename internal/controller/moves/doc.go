// Package moves is how people move ports from host to host. A controller begins a move and reports it; the two hosts
// make it.
//
//layout:floor=process
package moves
