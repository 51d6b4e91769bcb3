// Package bypass finds the devices that send and receive past a host's switches: macvlans, VLAN interfaces and the like
// on top of the devices of ports and uplinks.
//
//layout:floor=process
package bypass
