// Package adoption moves the host's own addresses from an uplink's device to a host port and back (S81), and watches
// until the network is reached. The rules and the journal are package adopt's; this one reads the host, does the steps
// and answers the commands.
//
//layout:floor=process
package adoption
