// Package kept is the form in which rollouts are kept in the store.
//
//layout:floor=process
package kept
