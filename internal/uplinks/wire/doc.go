// Package wire sends and receives single Ethernet frames of the agent's own protocols on a device: announcements,
// beacons, LACP and LLDP. The switch's program does not see frames that are sent here; received frames arrive in
// addition to it.
//
//layout:floor=network
package wire
