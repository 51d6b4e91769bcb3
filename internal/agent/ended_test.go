package agent

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"heddle/internal/agent/instance"
)

// logged calls a function with each record of the log.
type logged struct {
	slog.Handler
	call func(slog.Record)
}

func (h logged) Enabled(context.Context, slog.Level) bool { return true }

func (h logged) Handle(_ context.Context, r slog.Record) error {
	h.call(r)
	return nil
}

// A guest that ends while the agent acts on the notes is noted, too: its note is not removed unread.
func TestS151_ANoteThatIsWrittenMeanwhileCounts(t *testing.T) {
	r := newRig(t, base)
	r.dev.veth("vnet0", "02:00:00:00:00:77")
	r.dev.veth("vnet1", "02:00:00:00:00:78")
	other := ofVM(anotherVM, "vnet1")
	other.Name, other.MAC = "vm2/net0", "52:54:00:00:00:02"
	if err := r.hook(ofVM(movingVM, "vnet0")); err != nil {
		t.Fatal(err)
	}
	if err := r.hook(other); err != nil {
		t.Fatal(err)
	}
	delete(r.dev.byName, "vnet0")
	delete(r.dev.byName, "vnet1")
	if err := r.restart(base); err != nil {
		t.Fatal(err)
	}
	paths := instance.Paths{Run: t.TempDir()}
	note := func(uuid string) {
		if err := paths.NoteEnded(r.name, uuid, true); err != nil {
			t.Error(err)
		}
	}
	note(movingVM)
	first := sync.OnceFunc(func() { note(anotherVM) })
	r.log = slog.New(logged{slog.DiscardHandler, func(slog.Record) { first() }})
	r.endNoted(paths)
	if left := r.saved().Ports; len(left) != 0 {
		t.Errorf("ports are left: %+v", left)
	}
	if notes, err := paths.NotedEnded(r.name); err != nil || len(notes) != 0 {
		t.Errorf("notes are left: %q, %v", notes, err)
	}
}
