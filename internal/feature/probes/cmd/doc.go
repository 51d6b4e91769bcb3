// Package cmd has the commands about the physical network between hosts: health, and its benchmark.
//
//layout:floor=verbs
package cmd
