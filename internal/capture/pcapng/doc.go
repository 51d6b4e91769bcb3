// Package pcapng writes captures in the pcapng format (draft-ietf-opsawg-pcapng): one section, an interface for each
// port, a comment and a direction for each packet, and statistics at the end. Wireshark, tshark and tcpdump read it.
//
//layout:floor=words
package pcapng
