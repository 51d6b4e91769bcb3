// Package flapping counts how often a host learns the same MAC again, so that controllers can tell that it goes to and
// fro between hosts. Pure.
//
//layout:floor=kinds pure
package flapping
