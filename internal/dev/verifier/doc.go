// Package verifier holds what the kernel programs may cost the kernel's verifier: a checked-in file per program and
// kernel series, and the comparison with what a kernel says now. A program that grows past the verifier's limits no
// longer loads, and the first to notice would be users with another kernel.
//
//layout:floor=top
package verifier
