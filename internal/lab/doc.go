// Package lab builds a scenario on one machine: hosts, virtual machines, physical switches and routers are network
// namespaces, cables are veth pairs, and every host has a real agent. A lab outlives the process that builds it. Before
// anything is made, a record of everything that it may consist of is written; taking the lab down uses that record.
//
//layout:floor=workshop
package lab
