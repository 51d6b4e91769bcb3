// Package flow defines the types of metering that counting, storing, exporting and showing flows share: what identifies
// a flow (Key), its counts (Counts), where it was observed (Point), and what is reported about it (Record). It imports
// nothing but the types of names.
//
//layout:floor=kinds pure
package flow
