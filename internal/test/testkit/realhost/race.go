//go:build race

package realhost

// raced says that the test runs under the race detector, and so do the programs that it tests.
const raced = true
