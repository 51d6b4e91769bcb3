package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"heddle/internal/agent/active"
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

	name    string
	version string
	place   string // this machine and agent, so that no other host derives the same addresses
	started time.Time
	log     *slog.Logger
	dev     Devices
	kernel  Kernel
	meters  *metrics.Agent // count what the agent does
	events  *event.Bus
	store   *state.Store
	state   *state.State

	calls   chan func()
	stopped chan struct{} // closed when the loop has ended
	lastErr string        // see complain
}

// ends reports whether the agent is stopping.
func (s *shared) ends() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// do runs f in the loop and waits for it.
func (s *shared) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case s.calls <- func() { done <- f() }:
		return <-done
	case <-s.stopped:
		return errors.New("the agent is stopping")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// post runs f in the loop, from any goroutine but the loop's own; false if the loop has ended.
func (s *shared) post(f func()) bool {
	select {
	case s.calls <- f:
		return true
	case <-s.stopped:
		return false
	}
}

// postUnless runs f in the loop unless done is closed first.
func (s *shared) postUnless(done <-chan struct{}, f func()) {
	select {
	case s.calls <- f:
	case <-s.stopped:
	case <-done:
	}
}

// inLoop runs f in the loop. After the loop has ended it does nothing: closing the kernel's objects has the same effect
// as f.
func (s *shared) inLoop(f func() error) error {
	err := s.do(context.Background(), f)
	select {
	case <-s.stopped:
		return nil
	default:
		return err
	}
}

// complain logs an error once, until it changes or goes away.
func (s *shared) complain(what string, err error) {
	if text := what + ": " + err.Error(); text != s.lastErr {
		s.lastErr = text
		s.log.Error(what, "err", err)
	}
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

// publishDevice publishes that a device serves a port now, or no longer does.
func (s *shared) publishDevice(k event.Kind, h state.Held) {
	what := "port"
	if h.Uplink {
		what = "uplink"
	}
	e := about(what, h.ID)
	e.Kind, e.Device = k, h.Device
	e.Text = fmt.Sprintf("device %s serves %s %s", h.Device, what, h.ID.Name)
	if k == event.Disconnected {
		e.Text = fmt.Sprintf("device %s no longer serves %s %s", h.Device, what, h.ID.Name)
	}
	s.events.Publish(e)
}
