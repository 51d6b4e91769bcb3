// Package memory gives back memory that an agent at rest does not need: after a burst of work its heap, and the pages
// of its program.
//
//layout:floor=process
package memory
