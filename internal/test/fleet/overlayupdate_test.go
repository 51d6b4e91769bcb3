package fleet

import (
	"fmt"
	"syscall"
	"testing"

	"heddle/internal/test/testkit"
)

// TestS84_AgentsAreUpdatedWhileTheirTunnelsCarry: agents are killed and ended, go on as a later version and as the one
// before, while guests of both hosts send to each other over the tunnel, and no frame is lost. What the controllers say
// of new guests is known then as before.
func TestS84_AgentsAreUpdatedWhileTheirTunnelsCarry(t *testing.T) {
	testkit.Long(t, "builds a later version, and streams while agents are updated")
	t.Parallel()
	f := newOverlayFleet(t, 2, segmentText)
	for n, h := range f.hosts {
		for i, step := range []struct {
			what    string
			end     syscall.Signal
			program func()
		}{
			{"killed, and on as a later version", syscall.SIGKILL, h.Later},
			{"ended, and on as the version before", syscall.SIGTERM, h.Earlier},
		} {
			b := f.bothWays()
			h.End(step.end)
			step.program()
			h.Start("")
			h.Up("p-web", "tunnel")
			f.connect(1-n, 4+i, fmt.Sprintf("p-new%d", i), "web")
			h.Await("it knows a guest that is new on the other host", func() bool {
				_, known := h.located()[fleetMAC(1-n, 4+i)]
				return known
			})
			b.whole(step.what)
		}
	}
}

// whole ends streams of which no frame may be lost.
func (b *bothWays) whole(what string) {
	b.f.t.Helper()
	for _, s := range b.stream {
		b.f.whole(what, s)
	}
}
