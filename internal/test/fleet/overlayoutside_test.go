package fleet

import (
	"bytes"
	"testing"

	"heddle/internal/test/testkit"
	"heddle/internal/test/testkit/cable"
)

// TestS190_ALearningPortHearsNothingOfTalkWithAnotherHost: a guest with nested guests gets unicast of its neighbours
// for unknown destinations, and none for guests that are known on other hosts, by controllers or by frames.
func TestS190_ALearningPortHearsNothingOfTalkWithAnotherHost(t *testing.T) {
	testkit.Long(t, "TestS190_WhatTheTunnelKnowsIsForTheTunnelAlone holds the kernel's program against the model")
	t.Parallel()
	f := newOverlayFleet(t, 2, nestedText)
	f.connect(0, 4, "p-nest", "web")
	near, nested, far := f.guests["p-web@0"], f.guests["p-nest@0"], f.guests["p-web@1"]
	unknown := cable.Frame(inner(7), fleetMAC(0, 3), 0, "to an unknown station")
	near.Send(unknown)
	nested.Expect(unknown, "it wants what is for unknown destinations")
	f.broadcastFrom("p-web@1", inner(8))
	f.hosts[0].Await("a nested guest of the other host is located", func() bool {
		_, known := f.hosts[0].located()[inner(8)]
		return known
	})
	for _, to := range [][6]byte{fleetMAC(1, 3), inner(8)} {
		talk := cable.Frame(to, fleetMAC(0, 3), 0, "to a guest of the other host")
		near.Send(talk)
		far.Expect(talk, "the destination is behind its port")
		end := cable.Frame(cable.Broadcast(), fleetMAC(0, 3), 0, "the end")
		near.Send(end)
		for _, frame := range nested.Until(end) {
			if bytes.Equal(frame[:6], to[:]) {
				t.Errorf("a copy of a frame for %x reached the learning port", to)
			}
		}
	}
}
