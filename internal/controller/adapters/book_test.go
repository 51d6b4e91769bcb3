package adapters

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

const vmOf = "6f9619ff-8b86-d011-b42d-00c04fc96401"

func adapterOf() part.Adapter { return part.AdapterOf(vmOf, "net0") }

// serves is the port of a guest that runs there.
func serves(generation uint64) *controllerv1.HostPort {
	return &controllerv1.HostPort{Switch: "dvs", Name: "p", PortGroup: "web", Vm: vmOf, Adapter: "net0",
		Generation: generation}
}

// bookWith is a book with hosts that are connected and have these ports.
func bookWith(ports map[string]*controllerv1.HostPort) (b *Book, conns map[string]*part.Conn) {
	log := slog.New(slog.DiscardHandler)
	b = New(Options{Log: log, Linger: time.Hour})
	conns = map[string]*part.Conn{}
	for id, p := range ports {
		b.Joined(id, "name of "+id)
		conns[id] = &part.Conn{Poke: func() {}}
		b.Arrived(id, conns[id], Arrival{Counts: []*controllerv1.HostPort{p}, Reported: true})
	}
	return b, conns
}

// tells is what a host is told next by a connection; nil for nothing.
func tells(b *Book, id string, c *part.Conn) *controllerv1.FollowSliceResponse {
	return part.Of(b).Objects(id, c, nil)
}

// Both hosts are asked to look anew before they are in conflict, and are told of the conflict once both have said so;
// it ends when one of them goes.
func TestS100_BothHostsAreAskedAndThenTold(t *testing.T) {
	b, conns := bookWith(map[string]*controllerv1.HostPort{"h1": serves(1), "h2": serves(2)})
	for id, c := range conns {
		m := tells(b, id, c)
		if m.GetReportAnew() == 0 || len(m.GetConflicts().GetConflicts()) != 0 {
			t.Errorf("%s is told %v", id, m)
		}
		b.Hear(id, c, &controllerv1.FollowSliceRequest{Reported: m.GetReportAnew()})
	}
	for id, c := range conns {
		if list := tells(b, id, c).GetConflicts().GetConflicts(); len(list) != 1 || len(list[0].GetRivals()) != 1 {
			t.Errorf("%s is told of %v", id, list)
		}
	}
	b.Remove("h2")
	if m := tells(b, "h1", conns["h1"]); m == nil || len(m.GetConflicts().GetConflicts()) != 0 {
		t.Errorf("when h2 was removed h1 is told %v", m)
	}
}

// A guest that runs elsewhere is waited for until its host says that it has stopped, or for as long as the caller has.
func TestS78_AHolderIsWaitedFor(t *testing.T) {
	b, conns := bookWith(map[string]*controllerv1.HostPort{"h1": serves(1)})
	b.Joined("h2", "name of h2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, elsewhere := b.Holder(ctx, "h2", adapterOf(), false)
	if !strings.Contains(elsewhere, "runs on host name of h1") {
		t.Errorf("%q", elsewhere)
	}
	over := make(chan string)
	go func() {
		_, elsewhere := b.Holder(t.Context(), "h2", adapterOf(), false)
		over <- elsewhere
	}()
	b.Reported("h1", nil)
	if elsewhere := <-over; elsewhere != "" {
		t.Errorf("when it has stopped: %q", elsewhere)
	}
	b.Left("h1", conns["h1"])
}

// What a host is connecting is in use until it has said what came of it, and what it was when it was lost.
func TestS78_WhatIsBeingConnected(t *testing.T) {
	var s Starts
	n := adapterOf()
	s.Begin("h1", n, time.Hour)
	if !s.On("h1", n) || len(s.Here("h1")) != 1 {
		t.Error("it is not being connected")
	}
	s.ended("h1", []*controllerv1.ClaimedAdapter{{Vm: n.VM, Adapter: n.Name}})
	if s.On("h1", n) {
		t.Error("it is, though the host has said what came of it")
	}
	s.Arrived("h1", []*controllerv1.ClaimedAdapter{{Vm: strings.ToUpper(n.VM), Adapter: n.Name}})
	if !s.On("h1", n) {
		t.Error("what a host brings along does not count")
	}
	s.left("h1")
	s.reported("h1", []*controllerv1.HostPort{serves(1)})
	if s.On("h1", n) {
		t.Error("it is, though the host has reported the port")
	}
}
