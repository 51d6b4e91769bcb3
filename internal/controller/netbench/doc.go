// Package netbench runs benchmarks of the physical network: all hosts, or some, send to one another at once, and say
// what arrived. It also shows what the probes between hosts have found.
//
//layout:floor=process
package netbench
