// Package qmp speaks QEMU's machine protocol (docs/interop/qmp-spec of QEMU) over a monitor's socket. The other side
// may be broken or hostile: its messages are limited in size, depth and number, and every wait has a timeout.
//
//layout:floor=kinds pure
package qmp
