// Package printable makes text from outside fit for a terminal, a log and a table: names that guests, neighbours and
// files chose may contain control sequences, and characters that change the direction of the text beside them.
//
//layout:floor=words pure
package printable
