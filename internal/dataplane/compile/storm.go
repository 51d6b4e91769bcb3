package compile

import (
	"time"

	"heddle/internal/abi"
	"heddle/internal/plan"
)

// compileStormControl writes the rates of its policy to a port's record, and how many frames may come at once: as many
// as the rate allows in the burst's time, at least one.
func compileStormControl(rec *abi.Port, s *plan.StormControl) {
	for class, rate := range [abi.Classes]int{
		abi.ClassUnicast: s.UnknownUnicast.V, abi.ClassMulticast: s.Multicast.V, abi.ClassBroadcast: s.Broadcast.V,
	} {
		if rate == 0 {
			continue
		}
		rec.Flags |= abi.PortStormControl
		rec.StormRate[class] = uint32(rate)
		rec.StormDepth[class] = uint32(max(1, int64(rate)*int64(s.Burst.V)/int64(time.Second)))
	}
}
