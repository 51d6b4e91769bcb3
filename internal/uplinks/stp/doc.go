// Package stp reads what physical switches say by spanning tree (IEEE 802.1D, 802.1w), to tell whether their port at
// the other end of an uplink forwards. It is pure, and says nothing itself.
//
//layout:floor=network pure
package stp
