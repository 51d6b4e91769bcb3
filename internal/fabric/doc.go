// Package fabric finds out whether the physical network between hosts carries what the switches need: each VLAN, frames
// of the switch's MTU, and bundles of ports where teams expect them, and no others. Hosts send each other probes. It is
// pure: which pairs of uplinks probe each other (Pairs), when and how long (Machine), what a probe is in bytes (Key),
// and what follows from the results of all hosts (Judge). Time and frames come from the caller.
//
//layout:floor=kinds pure
package fabric
