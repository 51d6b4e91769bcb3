// Package layout holds the packages to the floors that their doc.go names: imports go down or stay in their room, pure
// packages stay pure, the product does not know the workshop, features know each other by words, and types, states,
// packages and functions stay within bounds. It makes the table of rooms in the architecture page.
//
//layout:floor=top
package layout
