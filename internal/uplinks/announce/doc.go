// Package announce announces to the physical network where ports are: it makes RARP frames for their MACs on the uplink
// they use, and queries to the ports themselves, so that they report their multicast groups on the new path (S47, S49,
// S50). It builds the frames and decides, as a pure function of time, when each is sent.
//
//layout:floor=network pure
package announce
