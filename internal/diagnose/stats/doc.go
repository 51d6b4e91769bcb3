// Package stats sums the counters of ports by port group and switch, and computes rates from two readings. It is pure.
//
//layout:floor=kernel
package stats
