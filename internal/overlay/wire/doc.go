// Package wire reads and writes package span's words as they go between hosts and controllers. What comes from
// elsewhere is checked: a message that is not well formed is refused whole. Pure.
//
//layout:floor=answers pure
package wire
