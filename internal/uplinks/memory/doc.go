// Package memory defines what LACP, LLDP and teaming keep across a restart of the agent. It is pure: its user writes it
// to disk.
//
//layout:floor=network pure
package memory
