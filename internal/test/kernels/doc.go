// Package kernels holds the tests that run Heddle in QEMU guests with other kernels than the machine's. A guest gets
// the heddle program and compiled test binaries of other packages, and runs them as a machine of its own.
// docs/reference/kernels.md says which kernels are tested.
//
//layout:floor=top
package kernels
