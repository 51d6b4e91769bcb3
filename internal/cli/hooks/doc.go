// Package hooks has the commands that other programs call: the CNI plugin, libvirt's hook, and the one that follows
// Incus.
//
//layout:floor=verbs
package hooks
