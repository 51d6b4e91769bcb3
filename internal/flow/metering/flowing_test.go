package metering

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/flow"
	"heddle/internal/plan"
)

// idle is a timeout that no test waits for, short is one that tests wait for.
const (
	idle  = time.Hour
	short = 200 * time.Millisecond
)

func TestS64_WhatIsCountedIsExportedWhenItEnds(t *testing.T) {
	g := newRig(t)
	g.settle(short, "vm1")
	g.src.pass(key(1, 1), 7)
	g.await("the record", func() bool { return g.sent.sum()[flow.IdleTimeout] == 7 })
}

func TestNothingRunsWhileNothingIsMetered(t *testing.T) {
	g := newRig(t)
	g.settle(idle)
	g.await("the first drain", func() bool { return g.src.drained() > 0 })
	before := g.src.drained()
	time.Sleep(20 * every)
	if n := g.src.drained(); n != before {
		t.Errorf("%d drains while nothing is metered", n-before)
	}
	g.settle(idle, "u1")
	g.await("drains", func() bool { return g.src.drained() > before+3 })
	g.settle(idle)
	g.await("the end of the export", func() bool { g.sent.mu.Lock(); defer g.sent.mu.Unlock(); return g.sent.closed })
	var at int
	g.await("rest", func() bool {
		last := at
		at = g.src.drained()
		time.Sleep(5 * every)
		return at == last && g.src.drained() == at
	})
	if files, err := os.ReadDir(g.dir); err != nil || len(files) > 0 && !onlyPoints(files) {
		t.Errorf("%v %v are left", files, err)
	}
}

// onlyPoints says that no flow table is among the files.
func onlyPoints(files []os.DirEntry) bool {
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".table") {
			return false
		}
	}
	return true
}

// When metering is switched off at one port, that port's flows end completely counted, and no others end.
func TestFlowsOfAPortThatIsMeteredNoLongerAreEnded(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1", "vm2")
	g.src.pass(key(1, 1), 5)
	g.src.pass(key(2, 2), 6)
	g.await("two flows", func() bool { l, _ := g.Flows(query()); return l.Total == 2 })
	g.src.pass(key(1, 1), 50) // counted before the change was active
	g.settle(idle, "vm2")
	g.await("the record", func() bool { return g.sent.sum()[flow.ForcedEnd] == 55 })
	if l, err := g.Flows(query()); err != nil || l.Total != 1 || l.Flows[0].Port != "vm2" {
		t.Errorf("%+v %v", l, err)
	}
	g.settle(idle)
	g.await("the other", func() bool { return g.sent.sum()[flow.ForcedEnd] == 61 })
}

// When a guest leaves a host its flows end there, completely counted, although the port stays metered; what it sends
// and receives where it goes on is in records there, and the sums of both are those of the flow.
func TestS79_FlowsOfAGuestEndWhereItLeaves(t *testing.T) {
	from, to := newRig(t), newRig(t)
	from.settle(idle, "vm1", "vm2")
	to.settle(idle, "vm1")
	from.src.pass(key(1, 1), 5)
	from.src.pass(key(2, 2), 6)
	from.await("two flows", func() bool { l, _ := from.Flows(query()); return l.Total == 2 })
	from.src.pass(key(1, 1), 50) // counted before the guest stopped
	vm1 := plan.PortID{Switch: "lab", Name: "vm1"}
	from.left = map[plan.PortID]bool{vm1: true, {Switch: "other", Name: "vm1"}: true}
	from.settle(idle, "vm1", "vm2")
	to.src.pass(key(1, 1), 700)
	from.await("the record of the source", func() bool { return from.sent.sum()[flow.ForcedEnd] == 55 })
	if l, err := from.Flows(query()); err != nil || l.Total != 1 || l.Flows[0].Port != "vm2" {
		t.Errorf("%+v %v", l, err)
	}
	to.ends()
	if n := from.sent.sum()[flow.ForcedEnd] + to.sent.sum()[flow.ForcedEnd]; n != 755 {
		t.Errorf("the records of both hosts have %d packets of 755", n)
	}
	// It comes back, and leaves again.
	from.left = nil
	from.settle(idle, "vm1", "vm2")
	from.src.pass(key(1, 1), 8000)
	from.await("its flow", func() bool { l, _ := from.Flows(query()); return l.Total == 2 })
	from.left = map[plan.PortID]bool{vm1: true}
	from.settle(idle, "vm1", "vm2")
	from.await("the record", func() bool { return from.sent.sum()[flow.ForcedEnd] == 8055 })
	from.ends()
	if n := from.sent.sum()[flow.ForcedEnd]; n != 8061 {
		t.Errorf("%d packets in records of the source, want 8061", n)
	}
}

func TestTheLastRecordsAreSentWhenTheAgentStops(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1")
	g.src.pass(key(1, 1), 5)
	g.await("a flow", func() bool { l, _ := g.Flows(query()); return l.Total == 1 })
	g.src.pass(key(1, 1), 1)
	g.src.pass(key(1, 2), 2)
	g.ends()
	if n := g.sent.sum()[flow.ForcedEnd]; n != 8 || !g.sent.closed {
		t.Errorf("%d of 8 packets are in records", n)
	}
	// What the next agent finds in the kernel belongs to flows that begin anew.
	g.src.pass(key(1, 1), 3)
	g.start()
	g.settle(short, "vm1")
	g.await("what came later", func() bool { return g.sent.sum()[flow.IdleTimeout] == 3 })
}

func TestChangedSettingsAreTakenOverLive(t *testing.T) {
	g := newRig(t)
	g.settle(idle, "vm1")
	g.src.pass(key(1, 1), 5)
	g.await("a flow", func() bool { l, _ := g.Flows(query()); return l.Total == 1 })
	g.settle(short, "vm1")
	g.await("the record", func() bool { return g.sent.sum()[flow.IdleTimeout] == 5 })
	g.sent.mu.Lock()
	defer g.sent.mu.Unlock()
	if n := len(g.sent.settings); n != 2 || g.sent.settings[1].IdleTimeout != short || g.sent.closed {
		t.Errorf("%d settings, closed %v: want the export to go on with the new ones", n, g.sent.closed)
	}
}

// A kernel that fails is a problem that the status shows, and the runner tries again.
func TestAFailureIsShownAndGoesAway(t *testing.T) {
	g := newRig(t)
	g.src.failing = errors.New("no such table")
	g.settle(short, "vm1")
	problem := func() string {
		s, err := g.Status()
		if err != nil || len(s.Switches) == 0 {
			return ""
		}
		if sw := s.Switches[0]; (sw.Problem == "") != (sw.ProblemCode != api.MeteringFailed) {
			t.Errorf("problem %q has the code %q", sw.Problem, sw.ProblemCode)
		}
		return s.Switches[0].Problem
	}
	g.await("the problem", func() bool { return strings.Contains(problem(), "no such table") })
	g.src.mu.Lock()
	g.src.failing = nil
	g.src.mu.Unlock()
	g.src.pass(key(1, 1), 5)
	g.await("its end", func() bool { return problem() == "" && g.sent.sum()[flow.IdleTimeout] == 5 })
}

// Neither the agent's loop nor readers wait for records that take long.
func TestWhoTellsOfAPlanDoesNotWaitForCollectors(t *testing.T) {
	g := newRig(t)
	g.sent.gate = make(chan struct{})
	release := sync.OnceFunc(func() { close(g.sent.gate) })
	defer release()
	g.settle(idle, "vm1")
	g.src.pass(key(1, 1), 5)
	g.await("a flow", func() bool { l, _ := g.Flows(query()); return l.Total == 1 })
	g.settle(idle) // ends the flow, whose record can't be sent
	g.await("the loop waits", func() bool { n := g.src.drained(); time.Sleep(10 * every); return g.src.drained() == n })
	done := make(chan error)
	go func() {
		g.settle(idle, "vm1", "vm2")
		_, err := g.Status()
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("they wait")
	}
	release()
	g.await("the record", func() bool { return g.sent.sum()[flow.ForcedEnd] == 5 })
}
