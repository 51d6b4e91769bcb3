// Package migration measures what a guest and its peers notice when the guest moves to another host: two hosts with an
// agent each, a controller, a physical switch between them, and numbered packets, a bulk transfer, many connections and
// pings while the guest goes from one host to the other and back.
//
//layout:floor=workshop
package migration
