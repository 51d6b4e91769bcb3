// Package filter compiles expressions of pcap-filter(7) to programs of classic BPF, by running tcpdump. No library
// compiles them as exactly without linking libpcap, which a static program cannot do, and users of such expressions
// have tcpdump.
//
//layout:floor=words
package filter
