// Package backup is the file that a backup of a cluster's configuration is: what is in it, how it is written, read and
// checked, how it is brought into another definition, and how it differs from one. It is pure.
//
//layout:floor=process pure
package backup
