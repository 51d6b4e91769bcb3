// Package probes is a controller's part in the probes between hosts: it takes which uplinks take part and what hosts
// found, hands each host whom to probe, and says what follows for the whole fleet. All of it is in memory alone: hosts
// say it again when a controller was started anew. Each controller hears what the hosts of the others said, and comes
// to the same result.
//
//layout:floor=process
package probes
