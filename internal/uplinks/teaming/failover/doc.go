// Package failover decides, as pure functions of events and time, which uplinks may be used and which of them a port
// uses. An uplink that loses its link is out of use at once; when the link is up again it waits for the switch's
// up-delay; an uplink that flaps stays out of use; a port without failback stays where it is (S42–S45).
//
//layout:floor=network pure
package failover
