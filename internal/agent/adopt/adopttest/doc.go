// Package adopttest holds the tests of S81 with the real program, in network namespaces: a host whose own addresses are
// on the uplink's device, and the network's gateway.
//
//layout:floor=process
package adopttest
