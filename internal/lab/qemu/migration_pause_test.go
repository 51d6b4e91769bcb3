package qemu_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heddle/internal/api"
	"heddle/internal/lab/qemu"
	"heddle/internal/observe/event"
	"heddle/internal/test/testkit"
)

// must runs a monitor command of a guest.
func (g guest) must(t *testing.T, ctx context.Context, command string, args any) {
	t.Helper()
	if _, err := g.QMP(ctx, command, args); err != nil {
		t.Fatal(err)
	}
}

// config is the configuration that the host was made with.
func (h *heddleHost) config(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(h.Dir, "heddle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// delivered is how many frames were handed to a port's device.
func (h *heddleHost) delivered(t *testing.T, ctx context.Context, port string) (n uint64) {
	t.Helper()
	out, err := h.Output(ctx, "stats", port, "-o", "json")
	var s api.Stats
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range s.Counters {
		if strings.HasPrefix(c.Name, "packetsOut") && !strings.HasSuffix(c.Name, "Dropped") {
			n += c.Value
		}
	}
	return n
}

// storageMoves moves a disk of a guest to another place, as a migration of storage alone does: the guest runs on.
func storageMoves(t *testing.T, ctx context.Context, of guest) {
	t.Helper()
	for _, node := range []string{"here", "there"} {
		of.must(t, ctx, "blockdev-add", map[string]any{"driver": "null-co", "node-name": node, "size": 1 << 20,
			"read-zeroes": true})
	}
	of.must(t, ctx, "blockdev-mirror", map[string]string{"job-id": "storage", "device": "here", "target": "there",
		"sync": "full"})
	jobs := func(holds func(status string) bool) {
		t.Helper()
		for {
			var all []struct{ Status string }
			out, err := of.QMP(ctx, "query-jobs", nil)
			if err == nil {
				err = json.Unmarshal(out, &all)
			}
			status := ""
			if len(all) > 0 {
				status = all[0].Status
			}
			switch {
			case err != nil:
				fatal(t, ctx, "query-jobs: %s %v", out, err)
			case holds(status):
				return
			}
			select {
			case <-ctx.Done():
				fatal(t, ctx, "the storage does not move: %s", out)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	jobs(func(status string) bool { return status == "ready" })
	of.must(t, ctx, "job-complete", map[string]string{"id": "storage"})
	jobs(func(status string) bool { return status == "" })
}

// TestS99_APausedGuestKeepsItsPort: a guest that is only paused runs nowhere else. It keeps its port and its MAC, also
// through a restart of the agent; frames for it wait in its tap. So does one whose storage alone moves. If it is
// migrated while paused, its port moves with it, although it sends nothing.
func TestS99_APausedGuestKeepsItsPort(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "ping")
	attempts(t, pausedGuest)
}

func pausedGuest(t *testing.T, ctx context.Context) {
	t.Helper()
	s := newSite(t)
	source := s.migrant(t, ctx, 0, "vm", nil)
	s.connect(t, ctx, 0, "vm", "vm", "--qmp", s.monitor(0, "vm"))
	if err := source.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	reachable(t, ctx, s.outside, s.near[0])

	storageMoves(t, ctx, source)
	if told := s.hosts[0].told(t, ctx, "vm"); slices.ContainsFunc(told, func(e event.Event) bool {
		return e.Kind == event.Waiting || e.Kind == event.Migration
	}) {
		t.Errorf("a guest whose storage moves has events of a migration: %+v", told)
	}
	reachable(t, ctx, s.outside, s.near[0])

	source.must(t, ctx, "stop", nil)
	kept := func(why string) {
		t.Helper()
		s.hosts[0].awaitPort(t, ctx, "vm", why, func(p portView) bool {
			return p.State == "up" &&
				p.MAC == migrationMAC
		})
		if told := s.hosts[0].told(t, ctx, "vm"); slices.ContainsFunc(told, func(e event.Event) bool {
			return e.Kind == event.Waiting
		}) {
			t.Errorf("%s: a paused guest's port waits: %+v", why, told)
		}
	}
	before := s.hosts[0].delivered(t, ctx, "vm")
	if out, err := s.near[0].run(ctx, "ping -c 3 -i 0.2 -W 1 "+migrationAddr); err == nil {
		t.Fatalf("a paused guest answers: %s", out)
	}
	if n := s.hosts[0].delivered(t, ctx, "vm") - before; n < 3 {
		t.Errorf("%d frames were handed to the port of a paused guest, want 3 and more", n)
	}
	kept("while it is paused")
	s.hosts[0].End(syscall.SIGTERM)
	s.hosts[0].Start(s.hosts[0].config(t))
	kept("after a restart of the agent")
	source.must(t, ctx, "cont", nil)
	reachable(t, ctx, s.outside, s.near[0])
	kept("after it goes on")

	// It is migrated while paused: it arrives paused, and no frame of its own shows that.
	source.must(t, ctx, "stop", nil)
	socket := filepath.Join(s.hosts[1].Dir, "migration")
	target := s.migrant(t, ctx, 1, "vm", nil, "-incoming", "unix:"+socket)
	s.connect(t, ctx, 1, "vm", "vm", "--incoming", "--qmp", s.monitor(1, "vm"))
	s.hosts[1].awaitPort(t, ctx, "vm", "waiting", func(p portView) bool { return p.State == "waiting" })
	migrate(t, ctx, source, socket)
	s.hosts[1].awaitPort(t, ctx, "vm", "arrived", func(p portView) bool { return p.State == "up" })
	s.hosts[0].awaitPort(t, ctx, "vm", "left by its guest", func(p portView) bool {
		return p.State == "waiting" &&
			strings.Contains(p.Reason, "has left")
	})
	target.must(t, ctx, "cont", nil)
	reachable(t, ctx, s.outside, s.near[0], s.near[1])
}

// TestS99_APostCopyMigration: the guest runs on the second host while most of its memory is still on the first one,
// whose QEMU continues until that is transferred. The port moves when the guest does, not when its memory has.
func TestS99_APostCopyMigration(t *testing.T) {
	needGuests(t, qemu.VirtioNet)
	testkit.Tool(t, "ping")
	attempts(t, postCopyMigration)
}

func postCopyMigration(t *testing.T, ctx context.Context) {
	t.Helper()
	s := newSite(t)
	m := newMoves()
	source := s.migrant(t, ctx, 0, "vm", m.source)
	s.connect(t, ctx, 0, "vm", "vm", "--qmp", s.monitor(0, "vm"))
	if err := source.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	reachable(t, ctx, s.outside, s.near[0], s.near[1])
	early := s.listen(t, "to-host1")
	target := s.migrant(t, ctx, 1, "vm", m.target, "-incoming", "defer")
	s.connect(t, ctx, 1, "vm", "vm", "--incoming", "--qmp", s.monitor(1, "vm"))
	capability := map[string]any{"capabilities": []map[string]any{{"capability": "postcopy-ram", "state": true}}}
	source.must(t, ctx, "migrate-set-capabilities", capability)
	target.must(t, ctx, "migrate-set-capabilities", capability)
	socket := filepath.Join(s.hosts[1].Dir, "migration")
	target.must(t, ctx, "migrate-incoming", map[string]string{"uri": "unix:" + socket})
	// Pages that the guest needs come at once; the others so slowly that the migration continues until the test
	// ends it.
	source.must(t, ctx, "migrate-set-parameters", map[string]int{"max-bandwidth": 100_000,
		"max-postcopy-bandwidth": 1_000_000})
	s.hosts[1].awaitPort(t, ctx, "vm", "waiting", func(p portView) bool { return p.State == "waiting" })
	pingers := []*pinger{startPinger(t, ctx, "outside", s.outside), startPinger(t, ctx, "on the first host", s.near[0])}
	reachable(t, ctx, s.outside, s.near[0], s.near[1])

	source.must(t, ctx, "migrate", map[string]string{"uri": "unix:" + socket})
	awaitMigration(t, ctx, source, "active")
	reachable(t, ctx, s.outside, s.near[0], s.near[1])
	if n, _ := early.count(); n != 0 {
		t.Errorf("the second host sent %d frames of the guest's before it ran there", n)
	}
	source.must(t, ctx, "migrate-start-postcopy", nil)
	awaitMigration(t, ctx, source, "postcopy-active")
	m.await(t, ctx)
	s.hosts[0].awaitPort(t, ctx, "vm", "left by its guest", func(p portView) bool {
		return p.State == "waiting" &&
			strings.Contains(p.Reason, "has left")
	})
	s.hosts[1].awaitPort(t, ctx, "vm", "up", func(p portView) bool { return p.State == "up" })
	awaitMigration(t, ctx, source, "postcopy-active") // still
	source.must(t, ctx, "migrate-set-parameters", map[string]int{"max-postcopy-bandwidth": 1 << 30})
	awaitMigration(t, ctx, source, "completed")
	reachable(t, ctx, s.outside, s.near[0], s.near[1])
	for _, p := range pingers { // longer than the pause, since the guest waits for its memory
		gap, answers := p.gap(t)
		t.Logf("%s: QEMU's own pause %.1f ms, not reachable for %.1f ms; %d answers", p.what, ms(m.pause()), ms(gap),
			answers)
	}
	s.hosts[0].awaitPort(t, ctx, "vm", "left by its guest still", func(p portView) bool { return p.State == "waiting" })
	s.hosts[1].awaitPort(t, ctx, "vm", "up still", func(p portView) bool { return p.State == "up" })
	reachable(t, ctx, s.outside, s.near[0], s.near[1])
}
