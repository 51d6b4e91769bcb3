// Package optionsv1 has what the schema says of its own fields and values: the words in which the program writes them.
//
//layout:floor=words pure
package optionsv1
