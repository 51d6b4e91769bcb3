// Package cmd implements the commands of the workshop: "heddle lab …" and "heddle bench …". The command line parses
// their flags and prints their results.
//
//layout:floor=workshop
package cmd
