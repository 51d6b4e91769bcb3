// Package portable has what the heddle program can do on systems other than Linux: simulate. Switches, labs and
// measurements need the Linux kernel; the model of a switch does not.
//
//layout:floor=verbs pure
package portable
