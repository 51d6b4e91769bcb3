// Package peers knows the controllers of a cluster, and asks the others.
//
//layout:floor=platform
package peers
