// Package netspace runs code in another network namespace.
//
//layout:floor=kinds
package netspace
