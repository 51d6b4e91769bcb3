// Package tunnels makes the devices of switches' tunnels, finds this host's ends of them, and says which endpoints of
// other hosts they reach.
//
//layout:floor=process
package tunnels
