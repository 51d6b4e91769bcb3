// Package abi is what the C and the Go side of the dataplane share: reasons, limits and table records. abi_gen.go is
// generated from the C; this file adds names and nothing that has to be kept equal by hand.
//
//layout:floor=words pure
package abi
