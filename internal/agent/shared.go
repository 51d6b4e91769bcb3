package agent

import (
	"log/slog"
	"time"

	"heddle/internal/agent/active"
	"heddle/internal/agent/held"
	"heddle/internal/agent/loop"
	"heddle/internal/agent/metrics"
	"heddle/internal/agent/state"
	"heddle/internal/host/hostdev"
	"heddle/internal/observe/event"
	"heddle/internal/uplinks/teaming/teams"
)

// shared is what every owner has: access to the loop, the host, and the saved state. Each owner changes only its own
// part of the state.
type shared struct {
	active.Reader
	*loop.Loop
	*loop.Complaints

	name    string
	version string
	place   string // this machine and agent, so that no other host derives the same addresses
	started time.Time
	log     *slog.Logger
	dev     held.Devices
	kernel  Kernel
	meters  *metrics.Agent // count what the agent does
	events  *event.Bus
	store   *state.Store
	state   *state.State
}

func (s *shared) lookup(device string) (mtu int, ok bool) {
	d, ok, err := s.dev.Device(device)
	return d.MTU, ok && err == nil
}

// linkState returns what is wrong with the link of an uplink's device.
func (s *shared) linkState(device string) teams.Link {
	d, ok, err := s.dev.Device(device)
	switch {
	case device == "":
		return teams.LinkUnbound
	case err != nil || !ok:
		return teams.LinkGone
	case !d.AdminUp:
		return teams.LinkSetDown
	case !d.Carrier || d.Kind == hostdev.Veth && d.Peer.Seen && !d.Peer.AdminUp:
		return teams.LinkNoCarrier
	}
	return teams.LinkUnserved
}
