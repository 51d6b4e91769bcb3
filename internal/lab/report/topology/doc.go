// Package topology draws a lab from its scenario: guests above their hosts, hosts above the physical network, and every
// cable and port between them. It is pure.
//
//layout:floor=workshop pure
package topology
