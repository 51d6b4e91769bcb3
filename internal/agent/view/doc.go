// Package view describes what is active in the words of the command line: switches, uplinks, port groups, ports,
// counters, MACs and events. It reads and changes nothing.
//
//layout:floor=process
package view
