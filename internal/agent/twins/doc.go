// Package twins judges whether another station has the MAC of a port: that MAC speaks outside, again and again, while
// the port is there.
//
//layout:floor=kinds pure
package twins
