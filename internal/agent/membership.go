package agent

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/agent/cluster"
)

// membership is the host's part in a cluster of controllers. Its lock is held for moments: the conversation runs beside
// the loop, and commands ask how it stands.
type membership struct {
	*shared
	slicing   *slicing
	answers   *answers
	changer   *changer
	dir       string       // the record's
	looking   http.Handler // answers those who look by way of a controller
	statics   *statics
	isolation *isolation
	moving    *moving
	locating  *locating
	probing   *probing // nil for an agent that does not probe

	joining sync.Mutex // held by the command that joins or leaves
	mu      sync.Mutex
	record  *cluster.Record // nil where the host is in no cluster
	client  *cluster.Client
	stop    context.CancelFunc
	done    chan struct{}            // closed when the newest conversation has ended
	closed  bool                     // no conversation begins any more
	offered *controllerv1.HostOffers // the newest; nil before the first
	// How the conversation stands.
	connected string
	since     time.Time
	problem   string
}

// open reads the record. A damaged one does not keep the host from going on by what it has.
func (m *membership) open(dir string) {
	record, err := cluster.Load(dir)
	m.dir, m.record, m.since = dir, record, time.Now()
	if err != nil && !errors.Is(err, cluster.ErrNone) {
		m.problem = err.Error()
		m.log.Error("the host's part in a cluster cannot be read: the host goes on by what it has", "err", err)
	}
}

// begin begins the conversation, if the host is in a cluster.
func (m *membership) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil || m.client != nil || m.closed {
		return
	}
	begun, err := m.record.Begin(time.Now())
	if err != nil { // the host goes on: controllers can't tell what an earlier start of the agent has asked for late
		m.log.Warn("this start of the agent has no number", "err", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	client := cluster.New(cluster.Options{Host: member{m}, Together: member{m}, Membership: m.record,
		Log: m.log, Version: m.version, Begun: begun, ChecksMeant: true,
		Connected: m.now, Calls: m.looking, Ports: m.statics, Moves: m.moving, Segments: m.segments(),
		Probes: m.probes(), Kept: m.kept})
	done := make(chan struct{})
	m.client, m.stop, m.done = client, stop, done
	if m.offered != nil {
		client.Offer(m.offered)
	}
	go func() {
		defer close(done)
		client.Run(ctx)
	}()
}

// segments is the host's part in overlay segments; nil for an agent that has none.
func (m *membership) segments() cluster.Segments {
	if m.locating == nil || m.locating.keeper == nil {
		return nil
	}
	return m.locating.keeper
}

// probes is the host's part in the probes between hosts; nil for an agent that has none.
func (m *membership) probes() cluster.Probes {
	if m.probing == nil {
		return nil
	}
	return m.probing
}

// who is this host in its cluster.
func (m *membership) who() (id, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return "", ""
	}
	return m.record.Host(), m.record.Name()
}

// self is the host's id in its cluster; "" while it is in none.
func (m *membership) self() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return ""
	}
	return m.record.Host()
}

// end ends the conversation and waits for that, also where somebody else has it ended already.
func (m *membership) end() {
	m.mu.Lock()
	stop, done := m.stop, m.done
	m.client, m.stop = nil, nil
	m.mu.Unlock()
	if stop != nil {
		stop()
	}
	if done != nil {
		<-done
	}
}

// anew begins the conversation anew, beside the loop: the controllers are told then what the host has.
func (m *membership) anew() {
	go func() {
		m.joining.Lock()
		defer m.joining.Unlock()
		select {
		case <-m.Stopped():
		default:
			m.end()
			m.begin()
		}
	}()
}

// lost takes in which addresses the host has lost. The conversation begins anew if it had one of them: a card that
// flaps beside it does not disturb it.
func (m *membership) lost(gone []netip.Addr) {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client != nil && client.Uses(gone) {
		m.anew()
	}
}

// now takes in how the conversation stands.
func (m *membership) now(controller string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if controller != m.connected || m.problem == "" && err != nil {
		m.since = time.Now()
	}
	m.connected, m.problem = controller, ""
	if err != nil {
		m.problem = err.Error()
	}
}

// Close ends the conversation. No other begins after it, though one may just be about to: see anew.
func (m *membership) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.end()
	return nil
}
