// Package hostv1 has the messages of the contract between two hosts of a cluster, generated from the schema beside it.
//
//layout:floor=words pure
package hostv1
