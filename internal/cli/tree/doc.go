// Package tree has the heddle program: its tree of commands, help, completion and exit status.
//
//layout:floor=verbs
package tree
