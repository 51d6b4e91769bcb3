// Package domains follows where libvirt's domains run. On the host that a domain leaves, libvirt calls no hook before
// its QEMU has ended, but it sends an event when the guest is stopped there; everybody may read such events at its
// read-only socket.
//
//layout:floor=kinds
package domains
