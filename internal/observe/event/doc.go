// Package event defines the events of a host, in the user's words: the agent publishes them, "heddle events" follows
// them.
//
//layout:floor=kinds pure
package event
