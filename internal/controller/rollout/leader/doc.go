// Package leader drives the rollouts of a cluster while this controller has the lease on that.
//
//layout:floor=process
package leader
