// Package controlplane measures a controller with many hosts: a real controller process, and simulated agents that use
// the client of the real ones. A simulated host keeps its slice in memory; it has no kernel and no disk.
//
//layout:floor=workshop
package controlplane
