// Package lacp implements the link aggregation control protocol (IEEE 802.1AX): its frames, and the state machines that
// decide which members of a LAG are usable, as pure functions of events and time. It opens no socket and reads no
// clock.
//
//layout:floor=network pure
package lacp
