package rpc

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
)

// calledFor are the calls that the host was asked for.
func (m *mover) calledFor() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.called)
}

// noted are the moves that are to be cancelled at a host.
func (c *controller) noted(name string) []cancelledMove {
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	return c.fleet.names[name].doc.Cancelled
}

// waitsAt has a host wait for the guest, and go away where away says so.
func waitsAt(c *controller, m *mover, name string, away bool) {
	c.t.Helper()
	m.step("", agentv1.MovePhase_MOVE_PHASE_PREPARED)
	m.reports(actsPort(true))
	c.await("the port waits", func() bool {
		return slices.ContainsFunc((acts{movers{people{c.Server}}}).instances(&elsewhere{}), func(p reportedPort) bool {
			return p.host == name && p.GetWaits()
		})
	})
	if away {
		m.stop()
		c.await("it is away", func() bool { return c.state(name) == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	}
}

// A move that is cancelled while its target is away is cancelled when the host is back, by whichever controller, and
// once: what waits there since is not.
func TestS176_AMoveIsCancelledAtATargetThatWasAway(t *testing.T) {
	c, _, to := movingHosts(t)
	a, ctx := acts{movers{people{c.Server}}}, t.Context()
	waitsAt(c, to, "esx2", true)
	out, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0"})
	if err != nil || !slices.Equal(out.GetLater(), []string{"esx2"}) {
		t.Fatalf("%v, %v", out, err)
	}
	c.await("it is noted", func() bool { return len(c.noted("esx2")) == 1 })
	to.start()
	c.await("it is cancelled", func() bool { return slices.Equal(to.calledFor(), []string{"cancel vm/eth0"}) })
	c.await("it is not noted any more", func() bool { return len(c.noted("esx2")) == 0 })
	if of := to.meant[0]; of.GetVm() != actsVM || of.GetAdapter() != "net0" || of.GetHost() == "" {
		t.Errorf("it means %v", of)
	}
	to.reports(actsPort(true))
	to.stop()
	to.start()
	c.await("it is back", func() bool { return c.state("esx2") == controllerv1.HostState_HOST_STATE_UP })
	if called := to.calledFor(); len(called) != 1 {
		t.Errorf("asked for %q", called)
	}
}

// A host to which somebody has sent the VM anew keeps its port: the note is taken back first.
func TestS176_WhoSendsTheVMAnewTakesTheNoteBack(t *testing.T) {
	c, _, to := movingHosts(t)
	a, ctx := acts{movers{people{c.Server}}}, t.Context()
	waitsAt(c, to, "esx2", true)
	if _, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0", Host: "esx2"}); err != nil {
		t.Fatal(err)
	}
	c.await("it is noted", func() bool { return len(c.noted("esx2")) == 1 })
	m := &moving{nic: nic{actsVM, "net0"}, to: "esx2", name: "vm/eth0"}
	c.fleet.mu.Lock()
	m.toID = c.fleet.names["esx2"].id
	c.fleet.mu.Unlock()
	if err := a.goesThere(ctx, m); err != nil {
		t.Fatal(err)
	}
	c.await("nothing is noted", func() bool { return len(c.noted("esx2")) == 0 })
}

// A move that was aimed at another host is cancelled at both: the former target keeps no port that waits. Who names a
// host cancels there alone, and who operates one of them only cancels none.
func TestS176_ACancelledMoveLeavesNoPortAtAFormerTarget(t *testing.T) {
	c, _, to := movingHosts(t)
	a, ctx := acts{movers{people{c.Server}}}, t.Context()
	other := c.mover("esx3", agentv1.MoveSide_MOVE_SIDE_TARGET)
	waitsAt(c, to, "esx2", false)
	waitsAt(c, other, "esx3", false)
	out, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0", Host: "esx3"})
	if err != nil || len(out.GetPort().GetInstances()) != 1 || len(to.calledFor()) != 0 || len(other.calledFor()) != 1 {
		t.Fatalf("by its name: %v, %v", out, err)
	}
	other.step("", agentv1.MovePhase_MOVE_PHASE_PREPARED)
	if out, err = a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0"}); err != nil ||
		len(out.GetPort().GetInstances()) != 2 || len(to.calledFor()) != 1 || len(other.calledFor()) != 2 {
		t.Errorf("at all: %v, %v, %q, %q", out, err, to.calledFor(), other.calledFor())
	}
	another := actsPort(true)
	another.Vm = "6f9619ff-8b86-d011-b42d-00c04fc96402"
	other.step("", agentv1.MovePhase_MOVE_PHASE_PREPARED)
	to.step("", agentv1.MovePhase_MOVE_PHASE_PREPARED)
	other.reports(another)
	c.await("two VMs have the name", func() bool {
		return slices.ContainsFunc(a.instances(&elsewhere{}), func(p reportedPort) bool {
			return p.GetVm() == another.GetVm()
		})
	})
	_, err = a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0"})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "several VMs") {
		t.Errorf("ports of two VMs: %v", err)
	}
}
