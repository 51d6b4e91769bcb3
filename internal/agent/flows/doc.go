// Package flows is the part of the agent that meters flows, exports them and answers queries about them.
//
//layout:floor=process
package flows
