// Package metrics exports a controller's state to Prometheus. Its labels are words of fixed lists, so that their number
// does not depend on how many hosts there are.
//
//layout:floor=process
package metrics
