// Package netns makes named network namespaces and runs code and commands in them. The lab, the benchmarks and the
// tests build their hosts and VMs from it. Entering a namespace this way keeps the mounts of the caller, so that pinned
// kernel objects stay visible (unlike `ip netns exec`).
//
//layout:floor=workshop
package netns
