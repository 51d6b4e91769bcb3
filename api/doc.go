// Package api holds the contract between an agent and those who speak with it: a schema of protobuf (heddle/agent/v1)
// and the Go that is generated from it. It imports nothing of Heddle, so that anything can import it.
//
// contract.binpb is the contract as it was last released, an image that buf makes: "scripts/buf breaking" says whether
// the schema breaks it, and a test holds a program that knows no more than that against this agent.
//
//layout:floor=words pure
package api
