// Package cdp reads what physical switches of Cisco, and others, say of themselves by the Cisco Discovery Protocol. It
// is pure: frames are bytes. It sends nothing.
//
//layout:floor=network pure
package cdp
