// Package overlay has the words of overlay segments: a VNI instead of a VLAN, one segment over any routed network. A
// switch of a host speaks to other hosts through one tunnel. What this host knows of them comes from its file (peers)
// or from controllers, and reaches the kernel in two forms:
//
//   - Reach, in binding.Desired: which endpoints are taken seriously, and which of them have members of which segment.
//     It changes when hosts join or get their first port of a segment, and goes into force with the plan, at one
//     instant.
//   - Locations, by dataplane.Kernel.Locate: where a MAC is. They change all the time and by themselves, as deltas.
//
// A segment is (switch, VNI, VLAN inside). Inside a VNI, VLANs are as on the switch itself: a port of mode none is in
// the untagged one, an access port of VLAN 10 in (VNI, 10), a trunk port in all that it lists; the VLANs of two VNIs
// have nothing to do with each other, nor with those of the switch. In the tunnel the inner frame carries the tag of
// its VLAN, so that all hosts agree. Pure types.
//
//layout:floor=kinds pure
package overlay
