// Package metering runs the metering of an agent: its own goroutine drains the counts from the kernel, stores them,
// makes records and exports them, as the active plan demands, and it answers questions about flows. Nothing runs while
// nothing is metered.
//
//layout:floor=kernel
package metering
