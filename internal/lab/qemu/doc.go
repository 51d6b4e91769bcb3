// Package qemu runs real guests: a Linux kernel with busybox under QEMU's emulation (TCG, no KVM needed) with one
// network card on a tap device. The lab uses them if a namespace is not enough of a machine, the tests to see a real
// driver's checksums and offloads.
//
//layout:floor=workshop
package qemu
