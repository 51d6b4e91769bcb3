// Package presence decides whether the guest of a port runs on this host: whether the port speaks for it, or waits for
// it in silence (S99, S100). It reaches nothing: what it is told are local facts, and what it answers is a step that
// its caller takes.
//
// A port is silent from the moment when its own hypervisor has stopped the guest for a migration, or before the guest
// has arrived, until its guest runs here. Nothing that another host or a controller says makes a port silent or ends
// its silence, and no port that speaks becomes silent because time passed.
//
//layout:floor=process
package presence
