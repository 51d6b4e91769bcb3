// Package interrupt ends waits that the operating system does not end: opening a pipe to which nobody writes, or a read
// from a terminal.
//
//layout:floor=kinds
package interrupt
