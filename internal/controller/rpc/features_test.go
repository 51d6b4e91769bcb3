package rpc

import (
	"log/slog"
	"slices"
	"testing"

	"connectrpc.com/connect/v2"

	"heddle/internal/controller/capability"
	staticports "heddle/internal/feature/staticports/fleet"
	"heddle/internal/platform/store"
)

// portsIn are the static ports of a fleet.
func portsIn(f *fleet) (found *staticports.Ports) {
	each(f.capabilities, func(_ capable, p *staticports.Ports) { found = p })
	return found
}

// unheard is a capability that the core has never heard of.
type unheard struct {
	taken   []string
	anew    int
	changes int
}

func (a *unheard) Take(events []store.Event, anew bool) map[string]bool {
	for _, e := range events {
		a.taken = append(a.taken, string(e.Kind)+" "+e.Name)
	}
	if anew {
		a.anew++
	}
	return map[string]bool{"id-h1": true}
}

func (a *unheard) Change(capability.World) capability.Change {
	a.changes++
	return capability.Change{Judge: a}
}

func (a *unheard) Register(*connect.Server) {}

// A capability that the core has never heard of is told of the objects of its kinds alone, those in one batch together,
// and that the store is read anew; a host of which it has something else is woken; it has a place in each change.
func TestCapabilities_OneThatTheCoreDoesNotKnow(t *testing.T) {
	a := &unheard{}
	f := newFleet(slog.New(slog.DiscardHandler), 1)
	kinds := []capability.Kind{{Name: "rules"}, {Name: "sets"}, {Name: "work", Unread: true}}
	f.have(capabilities{{capability.Capability{Name: "unheard", Kinds: kinds}, a}}, f.adapters, f.together)
	m := arrives(t, f, "h1", nil)
	for len(m.conn.wake) > 0 {
		<-m.conn.wake
	}
	event := func(kind store.Kind, name string) store.Event {
		return store.Event{Key: store.Key{Kind: kind, Name: name}, Object: &store.Object{Doc: []byte("{}")}}
	}
	f.take(store.Batch{Revision: 7, Events: []store.Event{event("later", "x")}})
	if len(a.taken) > 0 || len(m.conn.wake) > 0 {
		t.Errorf("by an object of another kind it is told of %q, and %d hosts are woken", a.taken, len(m.conn.wake))
	}
	f.take(store.Batch{Revision: 8, Events: []store.Event{event("sets", "s"), event("work", "w"),
		event("rules", "r")}})
	if want := []string{"sets s", "rules r"}; !slices.Equal(a.taken, want) || len(m.conn.wake) != 1 || a.anew != 0 {
		t.Errorf("it is told of %q, want %q; %d hosts are woken; anew %d times", a.taken, want, len(m.conn.wake),
			a.anew)
	}
	f.take(store.Batch{Reset: true, Revision: 9})
	if a.anew != 1 {
		t.Errorf("the store is read anew: it is told so %d times", a.anew)
	}
	judge, work := f.capabilities.changeParts(capability.World{})
	if a.changes != 1 || len(judge) != 1 || judge[0] != a || len(work) != 0 {
		t.Errorf("%d changes: %v before, %v behind", a.changes, judge, work)
	}
	registers := 0
	each(f.capabilities, func(capable, capability.Server) { registers++ })
	if registers != 1 {
		t.Errorf("%d of its parts answer calls", registers)
	}
}
