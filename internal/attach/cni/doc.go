// Package cni is Heddle as a CNI plugin (github.com/containernetworking/cni, specification 1.0 and 1.1): it gives a
// container a veth pair, connects the host's end to a port group, and leaves addresses to an IPAM plugin.
//
//layout:floor=process
package cni
