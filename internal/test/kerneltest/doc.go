// Package kerneltest holds the kernel program to the numbered statements of docs/reference/behaviour.md, one test a
// statement, on whole frames: a configuration as a user writes it, frames written out in bytes, and complete
// expectations, so that a copy too many fails like a copy too few. It consists of tests only.
//
//layout:floor=top
package kerneltest
