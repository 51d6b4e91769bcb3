// Package moves has the rules of a port that goes from host to host with its guest (S79, S100): which copy of what
// belongs to the port counts, what the two hosts say to each other, and which generation a port has. It reaches
// nothing: its callers tell it what has happened and take the steps that it answers.
//
// Nothing here makes a port silent or ends its silence: that is decided by package presence alone, from local facts.
//
//layout:floor=process
package moves
