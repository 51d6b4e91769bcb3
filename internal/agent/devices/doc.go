// Package devices judges a host's devices for a switch: whether a device can be used, what it reports about itself, and
// the names of the devices that an agent makes. It is pure.
//
//layout:floor=process
package devices
