// Package agentcmd has the commands that run and remove the agent of this host, and print its metrics.
//
//layout:floor=verbs
package agentcmd
