// Package quick chooses the tests that a change can break, the nearest first: those of the packages that changed, of
// those that import them, and of the project itself. It is what one runs between two edits; make test runs everything.
//
//layout:floor=top
package quick
