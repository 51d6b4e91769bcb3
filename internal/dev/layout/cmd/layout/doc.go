// Command layout prints the pure packages, a path a line, as go build takes them.
//
//layout:floor=top
package main
