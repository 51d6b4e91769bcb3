// Package trace finds out what a host's switches would do with a frame, and reports it in the user's words: the path
// stage by stage, who would get it, on which uplink with which tag, and for every refusal the policy that causes it,
// the level that set it and the command that changes it. The model and the kernel program, on copies of the live
// tables, both answer; a difference between them is reported. The package is pure: its caller passes in a way to run
// the kernel program.
//
//layout:floor=kernel pure
package trace
