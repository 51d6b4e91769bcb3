// Package agentv1 has the messages of the contract between an agent and whoever talks to it, generated from the schema
// beside it.
//
//layout:floor=words pure
package agentv1
