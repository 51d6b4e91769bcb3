package fleet

import (
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/clockshift"
)

// A cluster that was off for months comes back by itself: its hosts renew certificates that have expired. So it does
// when that was a clock that was wrong: they renew those that begin in months.
func TestS120_S121_AClusterThatWasOffForMonthsComesBack(t *testing.T) {
	testkit.Long(t, "starts a controller three times; the tests of controller/rpc have the same with no process")
	t.Parallel()
	f := newFleetSized(t, 1, ownConfig, "own1", "own2")
	carried := f.stream("p-own1@0", "p-own2@0", fleetMAC(0, 1), fleetMAC(0, 2))
	f.controller.Start()
	f.controller.Define(fleetText)
	f.controller.Join(f.hosts[0].Host, "esx0", map[string]string{"rack": "a"})
	f.inState("esx0", api.HostUp)

	later := time.Now().AddDate(0, 0, 100)
	f.controller.End(syscall.SIGTERM)
	f.restart(0, later)
	f.controller.Clock = clockshift.Showing(later)
	f.controller.Start()
	f.inState("esx0", api.HostUp)

	f.controller.End(syscall.SIGTERM)
	f.hosts[0].Clock.Set(t, time.Now())
	f.controller.Clock = nil
	f.controller.Start()
	f.inState("esx0", api.HostUp)
	f.whole("on the host's own switch", carried)
}
