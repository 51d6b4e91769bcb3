// Package compile turns a plan that is bound to devices into the contents of the tables that the switch program reads:
// which slot each port has, its record, the members of every segment, teams and owned MACs. It is pure: package
// dataplane loads, writes and reads the tables.
//
//layout:floor=kernel pure
package compile
