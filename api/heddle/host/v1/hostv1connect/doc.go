// Package hostv1connect has the service of the contract between two hosts of a cluster for Connect, generated from the
// schema.
//
//layout:floor=words pure
package hostv1connect
