// Package hosts lists the parts that the features of the program heddle have in the agent.
//
//layout:floor=top
package hosts
