// Package host tests the program as its users run it: agents on hosts made of network namespaces, and the commands that
// talk to them. The program under test is this test binary itself.
//
//layout:floor=top
package host
