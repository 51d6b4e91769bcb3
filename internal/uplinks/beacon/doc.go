// Package beacon finds uplinks that have a link but do not reach the network. Every uplink of a team sends a small
// broadcast each second. If an uplink receives no beacons, or nobody receives its beacons, while the others still hear
// each other, it is taken out of use (S51). It is pure: frames are bytes, and time comes from the caller.
//
//layout:floor=network pure
package beacon
