// Package wire carries the types of internal/api over the contract: it writes a Go value into a message of the schema
// and reads it back.
//
// A field of a struct and the field of the message with the same name in JSON belong together; a tag wire:"name" gives
// another name. The schema may be stricter than Go: a Go string can be an enum or an address in the schema. Every field
// must have its counterpart, so that a value that is added on one side only fails every call's test and does not get
// lost.
//
//layout:floor=answers pure
package wire
