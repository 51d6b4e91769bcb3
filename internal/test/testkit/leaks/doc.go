// Package leaks holds tests to leaving nothing behind: file descriptors and goroutines of the test's own process, and
// the programs, tables and links that its agents made in the kernel.
//
//layout:floor=top
package leaks
