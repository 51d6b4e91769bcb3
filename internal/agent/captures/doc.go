// Package captures runs the captures that clients ask for, each in a goroutine beside the agent's loop.
//
//layout:floor=process
package captures
