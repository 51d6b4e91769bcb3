// Package fleet tests the real program with what is around a host: controllers, other hosts, physical switches between
// them, guests that bridge and route. Package host has what concerns one host and its user, package smoke what must
// hold on every kernel.
//
//layout:floor=top
package fleet
