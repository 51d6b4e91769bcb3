// Package binding is a plan together with the devices of a host: the desired state of the kernel. Pure types.
//
//layout:floor=answers pure
package binding
