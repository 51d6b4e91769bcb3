// Package dataplane puts a plan and the host's devices into the kernel as tables and programs: it loads, pins and
// attaches programs, writes the tables that package compile makes from the plan, and reads counters and learned MACs.
// Everything that it puts into the kernel continues to work without any process.
//
//layout:floor=kernel
package dataplane
