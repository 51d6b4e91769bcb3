package reasons

import "heddle/internal/abi"

// ByDesign reports whether frames from a port or uplink, or copies for it, meet this reason in normal operation, so
// that its count is no sign of a fault. These are copies that the reverse path check and the reflection check refuse
// because the receiver has another copy or will get one; copies for a guest that runs elsewhere; and frames that the
// physical network floods to an uplink and that have no receiver on this host.
func ByDesign(r abi.Reason, uplink bool) bool {
	switch r {
	case abi.ReasonReversePath, abi.ReasonReflected, abi.ReasonReceiverWaiting, abi.ReasonGuestElsewhere:
		return true
	case abi.ReasonUnknownUnicast, abi.ReasonNoReceiver:
		return uplink
	}
	return false
}
