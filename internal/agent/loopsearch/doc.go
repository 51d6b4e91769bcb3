// Package loopsearch is the part of the agent that looks for loops in the network: it reads what devices show and what
// the switch program reports, sends probes, and says which ports are to be blocked. How a loop is found is decided in
// uplinks/loops.
//
//layout:floor=process
package loopsearch
