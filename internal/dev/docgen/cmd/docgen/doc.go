// Command docgen writes the generated reference pages of the repository whose root is its argument.
//
//layout:floor=top
package main
