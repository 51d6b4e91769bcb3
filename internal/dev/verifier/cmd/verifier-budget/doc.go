// Command verifier-budget holds the kernel programs' costs to the checked-in budget, on the running kernel and in
// guests with other kernels, and prints a table for each. It exits with 1 when one is above the tolerance. It needs
// root, and for guests QEMU and a build without cgo.
//
//layout:floor=top
package main
