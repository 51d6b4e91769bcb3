// Package cmd is the command tree of the heddle-controller program.
//
//layout:floor=process
package cmd
