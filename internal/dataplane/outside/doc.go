// Package outside lets the switch program read where the tunnels know stations of other hosts to be: unicast to them is
// for the tunnel alone (S190, bpf/core/outside.h).
//
//layout:floor=kernel
package outside
