// Package api defines what an agent and its clients send each other, and has the client and the server. "-o json"
// prints the same types, so that their field names are public. They are carried over the contract in api/ at the top of
// the repository, by Connect on a Unix socket of the agent that only root may use.
//
//layout:floor=answers
package api
