// Package host is the host's part in the probes between hosts (S109): it tells the controllers which uplinks take part
// and what was found, is told whom to probe, and says what is wrong with the physical network.
//
//layout:floor=process
package host
