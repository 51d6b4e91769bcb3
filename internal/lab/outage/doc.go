// Package outage measures what a guest notices when an uplink of its host fails: numbered packets in both directions
// while the link goes down, the device is set down, or the link comes back, with few and with many ports on the switch.
// A second experiment measures beacon probing and load-based teaming.
//
//layout:floor=workshop
package outage
