// Package coalesced makes one call for all who ask while one before is under way.
//
//layout:floor=process
package coalesced
