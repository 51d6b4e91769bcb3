// Package port has the commands about ports, their moves, and the MAC table.
//
//layout:floor=verbs
package port
