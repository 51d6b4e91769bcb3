package history_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"heddle/internal/controller/history"
	"heddle/internal/slice"
)

func object(name, doc string) slice.Object {
	return slice.Object{Key: slice.Key{Kind: slice.Switch, Name: name}, Doc: []byte(doc)}
}

// record keeps a change as a controller does, and reads it back.
func record(t *testing.T, newest *history.Entry, base, revision int64, before, after *slice.Set) history.Step {
	t.Helper()
	e := history.Entry{Base: base, At: time.Unix(revision, 0), Who: "jo"}.Next(newest)
	c := slice.Between(before, after)
	b := history.Body{Put: c.Put, Removed: c.Removed}
	if e.Since == 0 {
		b.Whole = slices.Collect(before.All())
	}
	packed, err := history.Pack(b)
	if err != nil {
		t.Fatal(err)
	}
	value, err := history.Encode(e, packed)
	if err != nil {
		t.Fatal(err)
	}
	e, packed, err = history.Decode(base, revision, value)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = history.Unpack(packed); err != nil {
		t.Fatal(err)
	}
	return history.Step{Entry: e, Body: b}
}

// Whatever was changed, by controllers that keep records and by others: every definition after a recorded change is
// made of the records, and every one before a gap.
func TestHistory_EveryDefinitionIsMadeOfItsRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var steps []history.Step
	var newest *history.Entry
	at := map[int64]slice.Hash{}
	now, revision := &slice.Set{}, int64(0)
	change := func() *slice.Set {
		next := now.Clone()
		for range 1 + rng.IntN(3) {
			o := object(fmt.Sprint(rng.IntN(6)), fmt.Sprintf(`{"v":%d}`, rng.IntN(1000)))
			if next.Put(o); rng.IntN(4) == 0 {
				next.Remove(o.Key)
			}
		}
		return next
	}
	for range 1000 {
		next, base := change(), revision
		revision += 1 + rng.Int64N(3)
		if rng.IntN(50) > 0 { // else by a controller that keeps no records
			s := record(t, newest, base, revision, now, next)
			steps, newest = append(steps, s), &s.Entry
		}
		now = next
		at[revision] = now.Hash()
	}
	gaps, from := 0, 0
	for i, s := range steps {
		if s.Since == 0 {
			from = i
		}
		if s.Gap {
			gaps++
			if s.Before().Hash() != at[s.Base] {
				t.Errorf("before revision %d", s.Revision)
			}
		}
		if i-from >= history.Stretch {
			t.Fatalf("%d changes since a whole definition", i-from)
		}
		set, err := history.After(steps[from : i+1])
		if err != nil || set.Hash() != at[s.Revision] {
			t.Fatalf("revision %d: %v", s.Revision, err)
		}
		if s.Number != int64(i+1) {
			t.Fatalf("number %d of %d", s.Number, i+1)
		}
	}
	if gaps == 0 {
		t.Error("no change went without a record: this test shows less than it says")
	}
}

func TestHistory_AStretchWithAGapIsRefused(t *testing.T) {
	a, b := slice.Of(object("a", "{}")), slice.Of(object("b", "{}"))
	first := record(t, nil, 0, 5, a, b)
	second := record(t, &first.Entry, 5, 7, b, a)
	third := record(t, &second.Entry, 7, 9, a, b)
	for _, stretch := range [][]history.Step{{}, {second}, {first, third}} {
		if _, err := history.After(stretch); !errors.Is(err, history.ErrBroken) {
			t.Errorf("%d records: %v", len(stretch), err)
		}
	}
}

func TestHistory_WhatIsDamagedIsNamed(t *testing.T) {
	if _, _, err := history.Decode(1, 2, []byte("no record")); err == nil || !strings.Contains(err.Error(),
		"revision 2") {
		t.Error(err)
	}
	if _, err := history.Unpack([]byte("no record")); err == nil {
		t.Error("a body of nonsense was read")
	}
}

func TestHistory_TextsAreBounded(t *testing.T) {
	lines := make([]string, 100)
	for i := range lines {
		lines[i] = strings.Repeat("ä", 300)
	}
	e := history.Entry{Base: 3, Message: strings.Repeat("€", 2000), Objects: lines}.Next(nil)
	if len(e.Message) > history.MostMessage+4 || len(e.Objects) != 32 || e.Left != 68 || len(e.Objects[0]) > 210 {
		t.Errorf("%d bytes, %d lines and %d more", len(e.Message), len(e.Objects), e.Left)
	}
	if !e.Gap || e.Number != 1 || e.Since != 0 {
		t.Errorf("the first record on a definition that was there: %+v", e)
	}
}

func TestHistory_OldRecordsGoByStretches(t *testing.T) {
	now := time.Unix(10_000, 0)
	var list []history.Entry
	for i := range int64(40) { // a whole definition every 10; a change a second
		list = append(list, history.Entry{Base: 100 + i, Revision: 101 + i, Number: 1 + i, Since: int(i % 10),
			At: now.Add(time.Duration(i-40) * time.Second)})
	}
	for _, c := range []struct {
		keep history.Keep
		want int64
	}{
		{history.Keep{Changes: 40}, 0}, {history.Keep{Changes: 31}, 0}, {history.Keep{Changes: 30}, 110},
		{history.Keep{Changes: 11}, 120}, {history.Keep{Changes: 10}, 130}, {history.Keep{Changes: 1}, 130},
		{history.Keep{Changes: 40, Time: time.Hour}, 0}, {history.Keep{Changes: 40, Time: 31 * time.Second}, 110},
		{history.Keep{Changes: 40, Time: 30 * time.Second}, 110}, {history.Keep{Changes: 40, Time: time.Second}, 130},
		{history.Keep{Changes: 1000}, 0}, {history.Keep{Changes: 1000, Time: time.Hour}, 0},
		{history.Keep{Changes: 1000, Time: 31 * time.Second}, 110},
	} {
		if got := c.keep.Outdated(list, 40, now); got != c.want {
			t.Errorf("%+v: below %d, want %d", c.keep, got, c.want)
		}
	}
}
