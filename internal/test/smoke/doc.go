// Package smoke holds the tests of Heddle as a whole, the real program on real devices, that must pass on every kernel
// Heddle supports. They run on the machine's own kernel; package kernels runs them in guests with other kernels and
// other network cards.
//
//layout:floor=top
package smoke
