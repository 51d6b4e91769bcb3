// Package linkproto runs LACP and LLDP with the devices at the other ends of uplinks: the sockets, timers and
// goroutines around the pure packages lacp and lldp.
//
//layout:floor=network
package linkproto
