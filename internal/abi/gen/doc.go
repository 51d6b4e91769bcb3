// Command gen writes internal/abi/abi_gen.go from the C side: it compiles bpf/abi.bpf.c and reads the type information
// of the object, so that no record, limit or reason is written twice.
//
//layout:floor=words
package main
