// Package part is how the agent's core sees the parts of an agent: each has state of its own and takes part by hooks,
// and the core goes through them in the order of one table, without knowing what they are.
//
//layout:floor=process
package part
