package fleet

import (
	"context"
	"net"
	"path/filepath"

	controllerv1 "heddle/api/heddle/controller/v1"
	hostv1 "heddle/api/heddle/host/v1"
	"heddle/internal/agent/cluster"
	"heddle/internal/agent/transport"
	"heddle/internal/api"
	"heddle/internal/identity"
	"heddle/internal/plan"
)

// caller makes connections of its own to hosts of a fleet, with the key of one of them.
func (f *fleet) caller(n int) *transport.Caller {
	f.t.Helper()
	r, err := cluster.Load(filepath.Join(f.hosts[n].Dir, "state", "default"))
	if err != nil || r == nil {
		f.t.Fatalf("the identity of host %d: %v", n, err)
	}
	c := transport.NewCaller(transport.CallerOptions{Identity: func() (*identity.Between, error) {
		return r.Between(),
			nil
	},
		Dial: func(ctx context.Context, network, address string) (conn net.Conn, err error) {
			doing := f.hosts[n].NS.Do(func() error {
				conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
				return err
			})
			return conn, doing
		}})
	f.t.Cleanup(c.Close)
	return c
}

// repeats has every message of a move come again later: copies by a connection of its own with the source's key, and
// the calls of managers. None changes anything.
func (f *fleet) repeats(vm int) {
	t := f.t
	t.Helper()
	port, mac := f.startsMoving(vm, func(string) {})
	f.moves(1, port, in("copied"), "a copy is there")
	r, err := cluster.Load(filepath.Join(f.hosts[1].Dir, "state", "default"))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := f.moveOf(1, port)
	c := f.caller(0)
	again := func(number uint64, phase hostv1.SourcePhase, wants hostv1.TargetPhase) {
		t.Helper()
		a, err := c.Call(t.Context(), &controllerv1.MoveOrder{Move: m.Move, Host: r.Host(), HostName: "esx1",
			Addresses: []string{"10.0.0.2:7413"}}, &hostv1.CopyPortRequest{Move: m.Move, Number: number, Phase: phase,
			Generation: 1, Bundle: &hostv1.PortBundle{Version: 1, Complete: true, Counters: []*hostv1.PortCount{
				{Name: "packetsIn.unicast", Value: 1_000_000}}}})
		if err != nil || a.GetConfirmed() < number || a.GetPhase() != wants {
			t.Errorf("copy %d, %s, again: %v, %v", number, phase, a, err)
		}
	}
	again(1, hostv1.SourcePhase_SOURCE_PHASE_RUNNING, hostv1.TargetPhase_TARGET_PHASE_WAITING)
	for range 2 {
		if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
			t.Fatal(err)
		}
	}
	f.moves(1, port, func(m api.PortMove) bool { return m.Last }, "the last copy is there")
	f.sendsAs(1, port, mac, framesAfter)
	f.moves(1, port, in("active"), "active")
	f.moves(0, port, in("active"), "it knows that the guest runs elsewhere")
	m, _ = f.moveOf(1, port)
	for _, phase := range []hostv1.SourcePhase{hostv1.SourcePhase_SOURCE_PHASE_RUNNING,
		hostv1.SourcePhase_SOURCE_PHASE_STOPPED, hostv1.SourcePhase_SOURCE_PHASE_RESUMED} {
		for _, number := range []uint64{1, m.Copies} {
			again(number, phase, hostv1.TargetPhase_TARGET_PHASE_ACTIVE)
		}
	}
	f.hosts[1].must("port", "connect", port, "--incoming", "--switch", "dvs", "--port-group", "web", "--device", port,
		"--mac", plan.MAC(mac).String(), "--vm-uuid", uuid(vm), "--adapter", "net0")
	f.hosts[1].must("port", "activate", port)
	if err := f.hosts[1].CancelMove(t.Context(), api.PortMoveOf{Port: port}); err == nil {
		t.Error("a move is cancelled whose guest has arrived")
	}
	for range 2 {
		if err := f.hosts[0].ReleaseMovedPort(t.Context(), api.PortMoveOf{Port: port}); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.hosts[0].SilencePort(t.Context(), api.PortMoveOf{Port: port}); err == nil {
		t.Error("a port is silenced that has left")
	}
	f.speaks(1, port, 1)
	after, _ := f.moveOf(1, port)
	if after.Move != m.Move || after.Generation != m.Generation || after.Phase != "active" {
		t.Errorf("the move was %+v, and is %+v", m, after)
	}
	f.counted(1, port, framesBefore+framesAfter)
	for n := range f.hosts {
		if texts := f.conflictEvents(n, port); len(texts) > 0 {
			t.Errorf("host %d reports a conflict: %q", n, texts)
		}
	}
	f.hosts[1].must("port", "disconnect", port)
}
