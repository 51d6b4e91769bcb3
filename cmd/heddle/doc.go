// Heddle is a distributed virtual switch for Linux hypervisors: the agent, and the commands that talk to it.
//
//layout:floor=top
package main
