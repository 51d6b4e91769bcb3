// Package cable is a raw cable for tests: it sends and receives whole Ethernet frames on a device, with every tag in
// the bytes.
//
//layout:floor=top
package cable
