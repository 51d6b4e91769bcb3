// Package history answers what configuration is applied on a host, and what was applied before.
//
//layout:floor=process
package history
