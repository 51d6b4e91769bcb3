// Package linkstates is the part of the agent that has a port's link down while libvirt has that of its adapter down.
//
//layout:floor=process
package linkstates
