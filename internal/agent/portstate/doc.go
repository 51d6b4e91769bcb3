// Package portstate is what belongs to a port and travels with it from host to host (S79): its counters, learned MACs,
// used-up storm control, and what it has set for itself. Pack puts it into the message in which it travels, Unpack
// takes it out of one: what comes from another host is bounded and checked, since that host may be of another version,
// or hostile. The Carrier reads it from a port of this host, and gives it to one.
//
//layout:floor=process
package portstate
