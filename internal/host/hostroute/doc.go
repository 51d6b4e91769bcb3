// Package hostroute sets the default routes that host ports are given. They carry a protocol number of their own, by
// which they are known again; routes of others are never changed.
//
//layout:floor=kinds
package hostroute
