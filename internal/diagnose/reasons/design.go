package reasons

import "heddle/internal/abi"

// ByDesign reports whether a frame from a port or uplink, or a copy for it, that meets this reason does so in normal
// operation, so that counts of it are no sign of a fault: copies that the reverse path check and the reflection check
// leave out, of which the receiver has or will get another; copies for a guest that runs elsewhere; and what the
// physical network floods to an uplink for nobody on this host.
func ByDesign(r abi.Reason, uplink bool) bool {
	switch r {
	case abi.ReasonReversePath, abi.ReasonReflected, abi.ReasonReceiverWaiting:
		return true
	case abi.ReasonUnknownUnicast, abi.ReasonNoReceiver:
		return uplink
	}
	return false
}
