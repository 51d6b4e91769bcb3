// Package wire turns what hosts and controllers say of probes into messages, and back. What does not make sense is left
// out: it comes from another machine.
//
//layout:floor=answers pure
package wire
