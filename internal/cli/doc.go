// Package cli is the frame of the heddle program's commands: which agent or controller is asked, what is printed and
// how, progress, errors and exit statuses. The commands are in the packages below it, and package tree has them all.
// There are no globals: everything that a command uses from outside comes in through Deps.
//
//layout:floor=verbs
package cli
