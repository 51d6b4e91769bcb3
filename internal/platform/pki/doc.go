// Package pki is the controllers' side of identity: the cluster's own authority, the certificates it issues, tokens,
// revocation, and what expires when.
//
//layout:floor=platform pure
package pki
