package qemu_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heddle/internal/lab/qemu"
	"heddle/internal/test/testkit"
)

// TestS99_ALiveMigrationOnOneHost: both QEMUs on one host. The port keeps its name and moves from tap to tap with the
// guest.
func TestS99_ALiveMigrationOnOneHost(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "ping")
	attempts(t, migrationOnOneHost)
}

func migrationOnOneHost(t *testing.T, ctx context.Context) {
	t.Helper()
	s := newSite(t)
	m := newMoves()
	h := s.hosts[0]
	source := s.migrant(t, ctx, 0, "one", m.source)
	s.connect(t, ctx, 0, "vm", "one", "--qmp", s.monitor(0, "one"))
	if err := source.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	reachable(t, ctx, s.outside, s.near[0])

	socket := filepath.Join(h.Dir, "migration")
	s.migrant(t, ctx, 0, "two", m.target, "-incoming", "unix:"+socket)
	s.connect(t, ctx, 0, "vm", "two", "--incoming", "--qmp", s.monitor(0, "two"))
	h.awaitPort(t, ctx, "vm:incoming", "waiting", func(p portView) bool { return p.State == "waiting" })
	pingers := []*pinger{startPinger(t, ctx, "outside", s.outside), startPinger(t, ctx, "on the host", s.near[0])}
	reachable(t, ctx, s.outside, s.near[0]) // it answers from where it runs

	migrate(t, ctx, source, socket)
	m.await(t, ctx)
	h.awaitPort(t, ctx, "vm", "at its new tap", func(p portView) bool { return p.State == "up" && p.Device == "two" })
	h.awaitPort(t, ctx, "vm:left", "silent", func(p portView) bool { return p.State == "waiting" && p.Device == "one" })
	reachable(t, ctx, s.outside, s.near[0])
	unreachable(t, ctx, m.pause(), pingers...)
	if _, err := h.Output(ctx, "port", "disconnect", "--device", "one"); err != nil {
		t.Fatal(err)
	}
	if out, err := h.Output(ctx, "port", "list"); err != nil || strings.Contains(string(out), "vm:") {
		t.Errorf("left over: %s %v", out, err)
	}
	reachable(t, ctx, s.outside, s.near[0])
}

// TestS99_ACancelledMigrationAndKilledAgents: a cancelled migration changes nothing, nor does one during which both
// agents are killed.
func TestS99_ACancelledMigrationAndKilledAgents(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	attempts(t, cancelledMigration)
}

func cancelledMigration(t *testing.T, ctx context.Context) {
	t.Helper()
	s := newSite(t)
	m := newMoves()
	source := s.migrant(t, ctx, 0, "vm", m.source)
	s.connect(t, ctx, 0, "vm", "vm", "--qmp", s.monitor(0, "vm"))
	if err := source.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	reachable(t, ctx, s.outside, s.near[0], s.near[1])

	// A migration that is cancelled while memory is sent: the guest stays where it was, and the other host never
	// spoke for it.
	socket := filepath.Join(s.hosts[1].Dir, "migration")
	early := s.listen(t, "to-host1")
	given, err := qemu.Start(ctx, s.migrantOptions(t, 1, "vm", nil, "-incoming", "unix:"+socket))
	if err != nil {
		t.Fatal(err)
	}
	s.connect(t, ctx, 1, "vm", "vm", "--incoming")
	if _, err := source.QMP(ctx, "migrate-set-parameters", map[string]int{"max-bandwidth": 100_000}); err != nil {
		t.Fatal(err)
	}
	if _, err := source.QMP(ctx, "migrate", map[string]string{"uri": "unix:" + socket}); err != nil {
		t.Fatal(err)
	}
	awaitMigration(t, ctx, source, "active")
	if _, err := source.QMP(ctx, "migrate_cancel", nil); err != nil {
		t.Fatal(err)
	}
	awaitMigration(t, ctx, source, "cancelled")
	reachable(t, ctx, s.outside, s.near[0], s.near[1])
	s.hosts[0].awaitPort(t, ctx, "vm", "up", func(p portView) bool { return p.State == "up" })
	if n, _ := early.count(); n != 0 {
		t.Errorf("the second host sent %d frames of a guest that never came", n)
	}
	_ = given.Stop() // its error is expected: the guest never arrived
	if _, err := s.hosts[1].Output(ctx, "port", "disconnect", "vm"); err != nil {
		t.Fatal(err)
	}

	// Once more, and both agents are gone when the guest moves: the kernel programs do what is needed.
	if _, err := source.QMP(ctx, "migrate-set-parameters", map[string]int{"max-bandwidth": 1 << 30}); err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(s.hosts[1].Dir, "again")
	s.migrant(t, ctx, 1, "vm", m.target, "-incoming", "unix:"+again)
	s.connect(t, ctx, 1, "vm", "vm", "--incoming")
	for _, h := range s.hosts {
		h.End(syscall.SIGKILL)
	}
	migrate(t, ctx, source, again)
	m.await(t, ctx)
	reachable(t, ctx, s.outside, s.near[1])
	for _, h := range s.hosts {
		h.Start(h.config(t))
	}
	s.hosts[1].awaitPort(t, ctx, "vm", "up", func(p portView) bool { return p.State == "up" })
	s.hosts[0].awaitPort(t, ctx, "vm", "left by its guest", func(p portView) bool { return p.State == "waiting" })
	reachable(t, ctx, s.outside, s.near[0], s.near[1])
}
