// Package cmd is the command of the heddle-vsphere program.
//
//layout:floor=verbs
package cmd
