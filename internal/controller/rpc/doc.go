// Package rpc is how a controller answers: agents over mutual TLS, people and tools over its own socket.
//
//layout:floor=process
package rpc
