// Package capture has "heddle capture": frames of one host or of all, as lines, objects or a file.
//
//layout:floor=verbs
package capture
