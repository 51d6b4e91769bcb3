// Package access is who of the people and tools may do what at a controller: it knows callers by their tokens, bounds
// what they send, holds each call against its rule, and records it.
//
//layout:floor=platform
package access
