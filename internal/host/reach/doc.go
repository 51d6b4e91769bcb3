// Package reach guards the path to the host's own addresses (S81): from the plan before and after a change it derives
// which of the host's interfaces the change affects. Before and after the change it asks others through these
// interfaces; their answers show that the host is reachable.
//
//layout:floor=kinds
package reach
