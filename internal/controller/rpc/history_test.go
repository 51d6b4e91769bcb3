package rpc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
	"heddle/internal/controller/history"
	"heddle/internal/controller/past"
	"heddle/internal/platform/access"
	"heddle/internal/platform/store"
	"heddle/internal/slice"
)

// changed makes the definition what the text says, with a message, and returns the revision.
func (c *controller) changed(text, message string) int64 {
	c.t.Helper()
	return must(again(c.t, func() (*controllerv1.ApplyDefinitionResponse, error) {
		return people{c.Server}.ApplyDefinition(c.t.Context(), &controllerv1.ApplyDefinitionRequest{Content: text,
			File: "fleet.yaml", Message: message, Force: true})
	}))(c.t).GetRevision()
}

// content is the definition of a revision.
func (c *controller) content(revision int64) string {
	c.t.Helper()
	return must(c.reader().GetPastDefinition(c.t.Context(), &controllerv1.GetPastDefinitionRequest{
		Revision: revision}))(c.t).GetContent()
}

// Every definition that was answered can be read, compared and brought back; a change says who made it and why.
func TestHistory_EveryDefinitionCanBeBroughtBack(t *testing.T) {
	c := newController(t)
	type made struct {
		revision int64
		content  string
	}
	var all []made
	for i := range history.Stretch + 20 {
		r := c.changed(large(0, 1+i%3, 1+i), fmt.Sprint("change ", i))
		all = append(all, made{r, must(people{c.Server}.GetDefinition(t.Context(), nil))(t).GetContent()})
	}
	for _, m := range all {
		if got := c.content(m.revision); got != m.content {
			t.Fatalf("revision %d:\n%s\nwant\n%s", m.revision, got, m.content)
		}
	}
	first, last := all[0], all[len(all)-1]
	list := must(c.reader().ListChanges(t.Context(), &controllerv1.ListChangesRequest{Limit: 2}))(t)
	if n := list.GetChanges(); len(n) != 2 || n[0].GetRevision() != last.revision ||
		n[0].GetMessage() != fmt.Sprint("change ", len(all)-1) || n[0].GetFile() != "fleet.yaml" || n[0].GetGap() ||
		n[0].GetNumber() != int64(len(all)) || n[0].GetWho() != access.NameOf(t.Context()) || n[0].GetAt() == nil ||
		!slices.Contains(n[0].GetObjects(), "portGroup dvs/g0000 changed") {
		t.Errorf("the newest changes: %v", n)
	}
	older := must(c.reader().ListChanges(t.Context(), &controllerv1.ListChangesRequest{Before: list.GetMore(),
		Limit: 1000}))(t)
	if len(older.GetChanges()) != len(all)-2 || older.GetMore() != 0 {
		t.Errorf("%d older changes, more %d", len(older.GetChanges()), older.GetMore())
	}
	diff := must(c.reader().CompareDefinitions(t.Context(), &controllerv1.CompareDefinitionsRequest{
		From: all[2].revision, To: all[5].revision}))(t)
	if o := diff.GetObjects(); len(o) != 3 || o[0].GetFields()[0].GetField() != "vlan.access" ||
		o[0].GetFields()[0].GetOld() != "3" || o[0].GetFields()[0].GetNew() != "6" {
		t.Errorf("the difference: %v", o)
	}
	back := must(people{c.Server}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
		Restore: first.revision, Force: true}))(t)
	if got := must(people{c.Server}.GetDefinition(t.Context(), nil))(t); got.GetContent() != first.content {
		t.Errorf("brought back:\n%s", got.GetContent())
	}
	again := must(people{c.Server}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
		Restore: last.revision}))(t) // a rollback of the rollback
	if got := c.content(again.GetRevision()); got != last.content || c.content(back.GetRevision()) != first.content {
		t.Errorf("after the rollback of a rollback:\n%s", got)
	}
	list = must(c.reader().ListChanges(t.Context(), &controllerv1.ListChangesRequest{}))(t)
	if n := list.GetChanges(); len(n) != past.SomeChanges || n[1].GetRestores() != first.revision {
		t.Errorf("after two rollbacks: %v", n)
	}
}

// What is no revision of the definition is refused, and nothing is changed.
func TestHistory_WhatIsNoRevisionIsRefused(t *testing.T) {
	c := newController(t)
	r := c.changed(large(0, 1, 1), "")
	for _, n := range []int64{r - 1, r + 1, 1 << 60} {
		_, err := c.reader().GetPastDefinition(t.Context(),
			&controllerv1.GetPastDefinitionRequest{Revision: n})
		if connect.CodeOf(err) != connect.CodeNotFound || !strings.Contains(err.Error(), "definition history") {
			t.Errorf("revision %d: %v", n, err)
		}
		_, err = people{c.Server}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{Restore: n})
		if connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("back to revision %d: %v", n, err)
		}
	}
	_, err := people{c.Server}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{Restore: r,
		Content: large(0, 2, 2)})
	if connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a file and a revision: %v", err)
	}
}

// A controller of an earlier version changes the definition without a record: that definition is kept as well, and the
// change after it says so.
func TestHistory_ChangesWithoutARecordAreFound(t *testing.T) {
	c := newController(t)
	first := c.changed(large(0, 1, 1), "")
	earlier := *c.Server
	earlier.KeepHistory = history.Keep{}
	unrecorded := must(people{&earlier}.ApplyDefinition(t.Context(), &controllerv1.ApplyDefinitionRequest{
		Content: large(0, 2, 2)}))(t).GetRevision()
	want := must(people{c.Server}.GetDefinition(t.Context(), nil))(t).GetContent()
	last := c.changed(large(0, 3, 3), "")
	if got := c.content(unrecorded); got != want {
		t.Errorf("the definition without a record:\n%s\nwant\n%s", got, want)
	}
	list := must(c.reader().ListChanges(t.Context(), &controllerv1.ListChangesRequest{}))(t).GetChanges()
	if len(list) != 2 || list[0].GetRevision() != last || !list[0].GetGap() || list[1].GetRevision() != first {
		t.Errorf("the changes: %v", list)
	}
}

// A change that is too large for its record is kept in pieces beside it.
func TestHistory_ALargeChangeIsRecorded(t *testing.T) {
	c := newController(t)
	after := &slice.Set{}
	for i := range 40 {
		text := store.NewID() // which does not compress
		for len(text) < 20_000 {
			text += store.NewID()
		}
		after.Put(slice.Object{Key: slice.Key{Kind: slice.Switch, Name: fmt.Sprint(i)}, Doc: []byte(`"` + text + `"`)})
	}
	list, e, err := people{c.Server}.recorder().Record(t.Context(), history.Entry{Base: 1}, after,
		slice.Between(&slice.Set{}, after))
	if err != nil || e.Pieces < 2 {
		t.Fatalf("%+v, %v", e, err)
	}
	r := must(c.Store.Write(t.Context(), list))(t)
	stretch := must(c.reader().Stretch(t.Context(), r))(t)
	if got := must(history.After(stretch))(t); got.Hash() != after.Hash() ||
		stretch[0].Before().Hash() != after.Hash() {
		t.Error("what was recorded is another change")
	}
	past := store.PastOf(c.Store.(*store.Store))
	if err := past.Remove(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if _, err := past.Kept(t.Context(), 1, e.ID, e.Pieces); !errors.Is(err, store.ErrPieceMissing) {
		t.Errorf("after its record: %v", err)
	}
}

// Old changes go, in whole stretches, with what was kept beside their records; what is left can be read.
func TestHistory_OldChangesGo(t *testing.T) {
	c := newController(t)
	c.KeepHistory = history.Keep{Changes: 10}
	var all []int64
	for i := range 3*history.Stretch + 2 {
		all = append(all, c.changed(large(0, 1, 1+i), ""))
	}
	past := store.PastOf(c.Store.(*store.Store))
	left := must(past.Oldest(t.Context(), 1000))(t)
	if len(left) < 10 || len(left) > 2*history.Stretch {
		t.Fatalf("%d records are left of %d", len(left), len(all))
	}
	for _, r := range all[len(all)-len(left):] {
		c.content(r)
	}
	gone := all[len(all)-len(left)-2]
	_, err := c.reader().GetPastDefinition(t.Context(), &controllerv1.GetPastDefinitionRequest{Revision: gone})
	if connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a change whose time is over: %v", err)
	}
}
