// Package hostdev sees and prepares the network devices of one network namespace by netlink: which devices exist,
// whether they are up, and — for a veth whose other end is in another namespace — how the owner configured that end
// (D1, D2). It never reads /sys/class/net, which may show another namespace's devices.
//
//layout:floor=kinds
package hostdev
