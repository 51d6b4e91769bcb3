// Package hostnet reads the configuration of the host's own IP stack on a device — addresses, routes, permanent
// neighbours — and moves it to another device unchanged: every message of the kernel is stored whole and sent back with
// the device changed. It works in the network namespace of the calling thread.
//
//layout:floor=kinds
package hostnet
