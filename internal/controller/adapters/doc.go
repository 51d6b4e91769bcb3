// Package adapters knows on which hosts adapters of VMs run, by what the hosts and the other controllers say. It has
// static ports follow their VMs, and marks the hosts that are in conflict about an adapter; the rules for that are in
// package conflict.
//
// Hosts in conflict are marked, each by the controller that it is connected to. A host brings its marks along to its
// next controller: they stay until it is known that the guest elsewhere has stopped, or the host there is lost for as
// long as it would hold its static ports. What a controller has not heard it asks the others.
//
//layout:floor=process
package adapters
