// Package bench measures Heddle against other ways to connect two guests on one host, and the cost of its program per
// frame. A benchmark is a command: it prints a report and leaves nothing behind.
//
//layout:floor=workshop
package bench
