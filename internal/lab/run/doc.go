// Package run measures the experiments on real traffic: it builds each row's lab, sends the row's traffic, and reads
// what happened from the agents' counters.
//
//layout:floor=workshop
package run
