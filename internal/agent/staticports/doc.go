// Package staticports is the host's part in static ports (S78, S79): whose the adapters of VMs on this host are, which
// ports controllers have bound to them, what is claimed of a controller when a port is connected, and what is given up.
// A guest is never kept from starting because no controller answers, and none that runs is cut off: what cannot be
// bound is a conflict port, which is marked and reported.
//
//layout:floor=process
package staticports
