// Package identity is who is who between hosts, controllers and people: names in certificates, tokens, and how one side
// makes sure of the other.
//
//layout:floor=words pure
package identity
