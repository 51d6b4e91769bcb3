// Package lldp implements the link layer discovery protocol (IEEE 802.1AB): its frames, the table of neighbours, and
// when to advertise, as pure functions of frames and time. It opens no socket and reads no clock.
//
//layout:floor=network pure
package lldp
