// Package cli is the command tree of the heddle program: one constructor per command, no globals; everything that a
// command uses from outside comes in through Deps.
//
//layout:floor=verbs
package cli
