// Package controllerv1 has the messages of the contract of a controller, generated from the schema beside it: with the
// agents of its hosts, and with people and tools.
//
//layout:floor=words pure
package controllerv1
