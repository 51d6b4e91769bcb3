// Manpages writes the manual pages and the shell completions of the program below a directory laid out as /usr/share.
//
//layout:floor=top
package main
