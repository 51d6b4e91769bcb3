// Command quick runs the tests that the change at hand can break, the nearest packages first, for a minute at most, and
// says what it left to make test. It exits with 1 where one failed.
//
//layout:floor=top
package main
