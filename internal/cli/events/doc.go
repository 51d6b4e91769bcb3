// Package events has "heddle events": what happened and what happens, of one host or of all.
//
//layout:floor=verbs
package events
