package rpc

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	agentv1 "heddle/api/heddle/agent/v1"
	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/fanout"
	"heddle/internal/controller/moves"
)

// calledFor are the calls that the host was asked for.
func (m *mover) calledFor() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.called)
}

// waitsAt has a host wait for the guest, and go away where away says so.
func waitsAt(c *controller, m *mover, name string, away bool) {
	c.t.Helper()
	m.step("", agentv1.MovePhase_MOVE_PHASE_PREPARED)
	m.reports(actsPort(true))
	c.await("the port waits", func() bool {
		return slices.ContainsFunc(c.seenByMoves(&fanout.Answers{}, "").Ports, func(p moves.Port) bool {
			return p.Host == name && p.GetWaits()
		})
	})
	if away {
		m.stop()
		c.await("it is away", func() bool { return c.state(name) == controllerv1.HostState_HOST_STATE_DISCONNECTED })
	}
}

// A move is cancelled at the hosts that are there, and the one that is away is named. Where all are away, nothing is
// cancelled, and the error says what to do.
func TestS176_AMoveIsCancelledWhereItCanBeAndNamesWhoIsAway(t *testing.T) {
	c, _, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
	other := c.mover("esx3", agentv1.MoveSide_MOVE_SIDE_TARGET)
	waitsAt(c, to, "esx2", true)
	_, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0"})
	if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "--cancel --to esx2") {
		t.Errorf("all are away: %v", err)
	}
	waitsAt(c, other, "esx3", false)
	out, err := a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0"})
	if err != nil || !slices.Equal(out.GetAway(), []string{"esx2"}) || len(out.GetPort().GetInstances()) != 1 ||
		out.GetPort().GetInstances()[0].GetHost() != "esx3" {
		t.Errorf("one is away: %v, %v", out, err)
	}
	to.start()
	c.await("it is back", func() bool { return c.state("esx2") == controllerv1.HostState_HOST_STATE_UP })
	if called := to.calledFor(); len(called) != 0 {
		t.Errorf("it is asked for %q by itself", called)
	}
}

// A move that was aimed at another host is cancelled at both: the former target keeps no port that waits. Who names a
// host cancels there alone, and who operates one of them only cancels none.
func TestS176_ACancelledMoveLeavesNoPortAtAFormerTarget(t *testing.T) {
	c, _, to := movingHosts(t)
	a, ctx := moveCallsAt(c.Server), t.Context()
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
		return slices.ContainsFunc(c.seenByMoves(&fanout.Answers{}, "").Ports, func(p moves.Port) bool {
			return p.GetVm() == another.GetVm()
		})
	})
	_, err = a.CancelMove(ctx, &controllerv1.CancelMoveRequest{Port: "vm/eth0"})
	if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "several VMs") {
		t.Errorf("ports of two VMs: %v", err)
	}
}
