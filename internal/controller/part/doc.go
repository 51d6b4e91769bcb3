// Package part has the hooks by which the capabilities of a controller take part in its conversations with hosts. A
// part implements those interfaces that it needs. It has state and a lock of its own, and what passes between it and
// the hosts' conversations are values: the ids and names of hosts, messages, and the connection that it may wake. Pure.
//
//layout:floor=process pure
package part
