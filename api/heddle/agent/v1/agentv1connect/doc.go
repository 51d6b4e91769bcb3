// Package agentv1connect has the services of the contract with an agent for Connect, generated from the schema.
//
//layout:floor=words pure
package agentv1connect
