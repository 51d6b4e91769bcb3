// Package multiqueue is a VM's adapter with several pairs of queues where the VM is a network namespace: a multi-queue
// tap of the host, another one in the VM, and for each pair of queues one thread that carries frames between both, as
// QEMU or vhost does for a virtio-net adapter (IFF_MULTI_QUEUE, Documentation/networking/tuntap.rst). It counts the
// frames of each queue, which the kernel does not for taps.
//
//layout:floor=workshop
package multiqueue
