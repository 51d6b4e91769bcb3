// Package waitline shows at a terminal who is waited for, while a command has nothing else to show.
//
//layout:floor=answers
package waitline
