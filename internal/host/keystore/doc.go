// Package keystore keeps this machine's identity in a cluster: its key, its certificate, the roots that it trusts and
// the controllers that it knows. Hosts and controllers both have one.
//
//layout:floor=kinds
package keystore
