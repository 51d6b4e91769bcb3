package rpc

import (
	"context"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/api/heddle/agent/v1/agentv1connect"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
)

// slow has a host's reports wait for hours from now on.
func (c *controller) slow(name string) (h *host, on *conn) {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	h = c.fleet.names[name]
	h.pace.SetLimit(1)
	for h.pace.AllowN(time.Now(), paceLeast) {
	}
	return h, h.conn
}

// A host that has reported more than its part is none the less there: it answers pings and calls, its offers count, and
// its guests get their ports, while its reports wait.
func TestS136_ReportsThatWaitHoldUpNothingElse(t *testing.T) {
	c, from, to := movingHosts(t)
	h, on := c.slow("esx2")
	late := actsPort(true)
	late.Name = "late"
	to.reports(late)
	c.await("its report waits for its turn", func() bool { return h.pace.Tokens() < 0 })
	to.client.Offer(takesOver(nil))
	c.await("its offers count", func() bool { return len(c.offered("esx2")) == 1 })
	if !c.fleet.answers(t.Context(), on) {
		t.Error("it counts as silent")
	}
	if a := to.claims(); a.GetUnavailable() || a.GetRefused() != "" {
		t.Errorf("its guest gets %v", a)
	}
	err := c.askAgent(t.Context(), "esx2", func(ctx context.Context, rpc *connect.Client) error {
		_, err := agentv1connect.NewMoveServiceClient(rpc).ListMoves(ctx, &agentv1.ListMovesRequest{})
		return err
	})
	if err != nil {
		t.Errorf("a call: %v", err)
	}
	if n := len(c.ports()); n != 1 {
		t.Errorf("%d ports are known: its reports do not wait", n)
	}
	from.reports()
	c.await("another host's reports do not wait", func() bool { return len(c.ports()) == 0 })
}

// What waits becomes one batch with what was said last, in the order of what is about it, and does not grow with how
// often it is said.
func TestReportsThatWaitBecomeOne(t *testing.T) {
	port := func(name, state string) *controllerv1.HostPort {
		return &controllerv1.HostPort{Switch: "dvs", Name: name, State: state}
	}
	change := func(put *controllerv1.HostPort, removed ...string) *controllerv1.FollowSliceRequest {
		c := &controllerv1.HostReportChange{Warnings: []string{put.GetState()}}
		if put != nil {
			c.Put = append(c.Put, put)
		}
		for _, name := range removed {
			c.Removed = append(c.Removed, &controllerv1.HostPortKey{Switch: "dvs", Name: name})
		}
		return &controllerv1.FollowSliceRequest{Change: c}
	}
	c := newController(t)
	h := &host{id: "x", pace: pace{rate.NewLimiter(1, 1)}}
	p := newPaced(c.Server, h, &conn{})
	p.running = true // somebody who never comes to it
	add := func(m *controllerv1.FollowSliceRequest) {
		if !p.add(t.Context(), m) {
			t.Fatalf("no room for %v", m)
		}
	}
	add(change(port("a", "old"), "b"))
	add(&controllerv1.FollowSliceRequest{Report: &controllerv1.HostReport{Ports: []*controllerv1.HostPort{
		port("a", "up"), port("c", "up")}}, Connected: []*controllerv1.ClaimedAdapter{{Vm: "V", Adapter: "net0"},
		{Vm: "w", Adapter: "net0"}}})
	for range 3 * mostBatches {
		add(change(port("a", "blocked"), "c"))
		add(change(port("c", "down")))
	}
	p.claimed([]*controllerv1.PortClaim{{Vm: "v", Adapter: "net0"}})
	ack := &controllerv1.SliceAcknowledgement{Warnings: []string{"w"}}
	add(&controllerv1.FollowSliceRequest{Acknowledgement: ack, Reported: 7})
	add(change(port("d", "up")))
	if len(p.waits) != 2 {
		t.Fatalf("%d batches", len(p.waits))
	}
	first, second := p.waits[0].message(), p.waits[1].message()
	state := map[string]string{}
	for _, q := range first.GetChange().GetPut() {
		state[q.GetName()] = q.GetState()
	}
	if len(first.GetReport().GetPorts()) != 2 || len(state) != 2 || state["a"] != "blocked" || state["c"] != "down" ||
		len(first.GetChange().GetRemoved()) != 0 || first.GetReported() != 7 ||
		!proto.Equal(first.GetAcknowledgement(), ack) || len(first.GetConnected()) != 1 {
		t.Errorf("the first: %v", first)
	}
	if second.GetReport() != nil || len(second.GetChange().GetPut()) != 1 || second.GetAcknowledgement() != nil {
		t.Errorf("behind the acknowledgement: %v", second)
	}
	n := 0
	for p.add(t.Context(), &controllerv1.FollowSliceRequest{Acknowledgement: ack}) {
		if n++; n > mostBatches {
			t.Fatal("acknowledgements have no bound")
		}
	}
}

// Where too many reports wait, what else a host says with one more counts before that has room.
func TestS136_WhatCountsAtOnceDoesNotWaitForRoom(t *testing.T) {
	c, _, _ := movingHosts(t)
	h, on := c.slow("esx2")
	p := newPaced(c.Server, h, on)
	p.running = true // somebody who never comes to it
	more := &controllerv1.FollowSliceRequest{Acknowledgement: &controllerv1.SliceAcknowledgement{Resend: true}}
	for p.add(t.Context(), more) {
	}
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan error, 1)
	more.Offers = takesOver(nil)
	go func() { over <- p.take(ctx, more) }()
	c.await("its offers count", func() bool { return len(c.offered("esx2")) == 1 })
	stop()
	if err := <-over; err == nil {
		t.Error("there was room")
	}
}

// A claim that comes while a batch is taken in which says that an earlier one of its adapter has ended is under way
// none the less.
func TestAnEarlierEndDoesNotEndAClaim(t *testing.T) {
	c, _, _ := movingHosts(t)
	h, on := c.slow("esx2")
	p, n := newPaced(c.Server, h, on), part.AdapterOf(actsVM, "net7")
	claim := func() { p.claimed([]*controllerv1.PortClaim{{Vm: n.VM, Adapter: n.Name}}) }
	starts := func() { c.fleet.adapters.Starts.Begin(h.id, n, time.Hour) }
	c.fleet.mu.Lock()
	p.add(t.Context(), &controllerv1.FollowSliceRequest{Connected: []*controllerv1.ClaimedAdapter{{Vm: n.VM,
		Adapter: n.Name}}})
	for waits := true; waits; { // until the batch is on its way
		if waits = p.mu.TryLock(); waits {
			waits = len(p.waits) > 0
			p.mu.Unlock()
		}
	}
	if p.mu.TryLock() { // the claim can come first
		p.mu.Unlock()
		claim()
		starts()
		c.fleet.mu.Unlock()
	} else {
		c.fleet.mu.Unlock()
		claim()
		c.fleet.mu.Lock()
		starts()
		c.fleet.mu.Unlock()
	}
	c.await("the batch is taken in", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return !p.running })
	if !c.fleet.adapters.Starts.On(h.id, n) {
		t.Error("the end of an earlier claim has ended it")
	}
}
