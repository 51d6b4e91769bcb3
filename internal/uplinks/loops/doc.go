// Package loops finds loops through ports of a host. It looks for connections between ports that the host's devices
// show; if frames behave as in a loop, it sends probes out of ports and observes where they come back. It decides which
// port is blocked and when it is tried again. It is pure: frames are bytes, and time comes from the caller.
//
//layout:floor=network pure
package loops
