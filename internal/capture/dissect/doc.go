// Package dissect describes in one line what an Ethernet frame is, in the manner of tcpdump: addresses, protocol,
// content. It reads only the bytes it is given, and reports if they end too early.
//
//layout:floor=words
package dissect
