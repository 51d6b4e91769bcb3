// Package certs makes certificates for tests of TLS.
//
//layout:floor=top
package certs
