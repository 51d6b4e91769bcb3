// Package observe has the types for what is seen on a host: counters and learned MACs. Pure.
//
//layout:floor=kinds pure
package observe
