// Package pathmtu is the part of the agent that knows how long packets to the tunnel endpoints of other hosts may be.
//
//layout:floor=process
package pathmtu
