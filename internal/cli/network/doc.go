// Package network has the commands about switches, port groups, uplinks, LAGs and segments.
//
//layout:floor=verbs
package network
