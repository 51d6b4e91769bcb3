package fleet

import (
	"fmt"
	"log/slog"
	"testing"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/part"
	"heddle/internal/platform/store"
)

const vm = "6f9619ff-8b86-d011-b42d-00c04fc96401"

// chunkWith is an event of the store: a static port is bound on a host, "" for none.
func chunkWith(name, id, host string) store.Event {
	k := store.Key{Kind: store.KindPorts, Name: name}
	doc := `{"next":1}`
	if host != "" {
		doc = fmt.Sprintf(`{"next":1,"bound":{%q:{"binding":{"host":%q,"vm":%q,"adapter":"net0"}}}}`, id, host, vm)
	}
	return store.Event{Key: k, Object: &store.Object{Key: k, Doc: []byte(doc)}}
}

// tells is what a host is told next by a connection.
func tells(b *Bindings, host string, c *part.Conn) (m *controllerv1.FollowSliceResponse) {
	m = &controllerv1.FollowSliceResponse{}
	b.Objects(host, c, func() *controllerv1.FollowSliceResponse { return m })
	return m
}

// A host is told its static ports once a connection, and then what changes. A store that is read anew takes nothing
// back that it has still.
func TestBindings_AHostIsToldWhatChanges(t *testing.T) {
	b := NewBindings(slog.New(slog.DiscardHandler))
	c := &part.Conn{Poke: func() {}}
	b.Connected("h1", c, nil)
	if m := tells(b, "h1", c); !m.GetPorts().GetWhole() || len(m.GetPorts().GetPut()) != 0 {
		t.Errorf("without ports it is told %v", m)
	}
	changed := b.Take([]store.Event{chunkWith("dvs/web/3", "96", "h1")}, false)
	if !changed.Hosts["h1"] || !changed.Adapters[part.AdapterOf(vm, "net0")] {
		t.Errorf("what is another: %v", changed)
	}
	if m := tells(b, "h1", c); m.GetPorts().GetWhole() || len(m.GetPorts().GetPut()) != 1 {
		t.Errorf("with a port it is told %v", m)
	}
	b.Take([]store.Event{chunkWith("dvs/web/3", "96", "h1")}, true)
	if m := tells(b, "h1", c); len(m.GetPorts().GetRemoved()) != 0 {
		t.Errorf("when the store is read anew it is told %v", m)
	}
	b.Take([]store.Event{chunkWith("dvs/web/3", "96", "h2")}, false)
	if m := tells(b, "h1", c); len(m.GetPorts().GetRemoved()) != 1 || b.Of(part.AdapterOf(vm, "net0")).On() != "h2" {
		t.Errorf("when another host has the port it is told %v", m)
	}
	if m := tells(b, "h1", c); m.GetPorts() != nil {
		t.Errorf("it is told again: %v", m)
	}
}

// An answer to a claim goes by the connection by which the host claimed, and by no later one.
func TestBindings_AnAnswerGoesToWhoAsked(t *testing.T) {
	b := NewBindings(slog.New(slog.DiscardHandler))
	pokes := 0
	old, now := &part.Conn{Poke: func() { pokes++ }}, &part.Conn{Poke: func() { pokes++ }}
	b.Connected("h1", old, nil)
	b.Answer("h1", old, &controllerv1.PortAnswer{Number: 1})
	if m := tells(b, "h1", old); len(m.GetAnswers()) != 1 || pokes != 1 {
		t.Errorf("%v, %d pokes", m, pokes)
	}
	b.Connected("h1", now, nil)
	b.Answer("h1", old, &controllerv1.PortAnswer{Number: 2})
	b.Disconnected("h1", old)
	if m := tells(b, "h1", now); len(m.GetAnswers()) != 0 || !m.GetPorts().GetWhole() {
		t.Errorf("by the next connection: %v", m)
	}
}
