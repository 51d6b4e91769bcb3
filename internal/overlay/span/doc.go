// Package span says who is where on overlay segments: which hosts are members of a segment, its span, and behind which
// host each MAC and each IP address is. A Table is a controller's knowledge of all segments. It is made of what hosts
// report, and hands each host of a segment's span a snapshot and then deltas. A Replica is what a host keeps of its own
// segments. Pure: no clock, no network.
//
//layout:floor=kinds pure
package span
