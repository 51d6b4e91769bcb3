package hostdev

import (
	"math"

	"github.com/safchain/ethtool"
)

// Speed returns the speed of a device's link in each direction, in bits per second; 0 if the device reports none, for
// example without a link.
func (h *Host) Speed(device string) float64 {
	var settings ethtool.EthtoolCmd
	megabits, err := h.eth.CmdGet(&settings, device)
	if err != nil || megabits == math.MaxUint32 { // SPEED_UNKNOWN
		return 0
	}
	return float64(megabits) * 1e6
}
