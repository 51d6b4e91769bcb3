// Package hostport has the commands about host ports: what has the addresses of the host itself, their adoption and
// confirmation.
//
//layout:floor=verbs
package hostport
