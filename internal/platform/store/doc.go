// Package store keeps the desired state of a Heddle cluster in etcd, embedded in the controller or an existing cluster.
//
// A store holds all objects in memory, by one watch: reads cost nothing and go on when etcd has no quorum. Writes are
// transactions that compare what they were built on, so that of two controllers that change the same thing one is told.
//
//layout:floor=platform
package store
