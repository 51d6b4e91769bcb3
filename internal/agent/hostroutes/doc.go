// Package hostroutes is the part of the agent that sets the routes of host ports.
//
//layout:floor=process
package hostroutes
