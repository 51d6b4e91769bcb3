package fleet

import (
	"strings"
	"syscall"
	"testing"

	"heddle/internal/test/testkit/cable"
)

// TestS180_ARemovedHostDoesNotComeBack: other hosts know neither its endpoint nor its guests from then on, though its
// agent goes on, starts again and says what it has.
func TestS180_ARemovedHostDoesNotComeBack(t *testing.T) {
	t.Parallel()
	f := newOverlayFleet(t, 2, segmentText)
	gone, stays := f.hosts[1], f.hosts[0]
	mac := fleetMAC(1, 3)
	if err := f.controller.RemoveHost(t.Context(), "esx1"); err != nil {
		t.Fatal(err)
	}
	forgotten := func() bool {
		_, known := stays.located()[mac]
		return !known
	}
	stays.Await("the removed host's guest is forgotten", forgotten)
	noticed := func() bool {
		m, err := gone.Membership(t.Context())
		return err == nil && m.Connected == "" && strings.Contains(m.Error, "revoked")
	}
	gone.Await("the host has noticed that it was removed", noticed)
	gone.End(syscall.SIGKILL)
	gone.StartWith(gone.Launch)
	gone.Await("it has noticed after a restart, too", noticed)

	// What its guest says does not reach the others, whatever they have heard of it before, and nothing is learned.
	before := stays.Counter("tunnel", "tunnel-unknown-endpoint")
	stays.Await("what it sends is refused", func() bool {
		f.guests["p-web@1"].Send(cable.Frame(cable.Broadcast(), mac, 0, "from a host that was removed"))
		return stays.Counter("tunnel", "tunnel-unknown-endpoint") > before
	})
	if !forgotten() {
		t.Error("the removed host's guest is located again")
	}
	// A change and a new guest make the controllers tell again.
	f.connect(0, 5, "p-new", "web")
	f.controller.Define(strings.Replace(segmentText, "{vni: 5000}}",
		"{vni: 5000}}\n  - {name: db, overlay: {vni: 5001}}", 1))
	if !forgotten() {
		t.Error("the removed host's guest is located again after a change")
	}
}
