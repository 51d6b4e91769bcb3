// Package powercut takes the power from a program at a chosen step of what it does with its files, and says what is on
// the disk then. The disk is an ext4 file system of the kernel's: what it has not been told to write is lost.
//
//layout:floor=top
package powercut
