// Package image makes the kernel and initramfs that Heddle's QEMU guests boot, from packages of the distribution that
// are downloaded and unpacked but not installed. The result is made once and stored in a cache directory.
//
//layout:floor=workshop
package image
