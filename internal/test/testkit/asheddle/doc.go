// Package asheddle lets a test program be the heddle program too: labs, agents and senders start the running program
// again, and then get the code under test.
//
//layout:floor=top
package asheddle
