package event

import (
	"context"
	"errors"
	"testing"
)

func TestBus_EveryFollowerSeesEveryKeptEventOnceAndIsToldWhatItMissed(t *testing.T) {
	b := NewBus(4)
	for range 3 {
		b.Publish(Event{Kind: Link})
	}
	got, missed, err := b.After(t.Context(), 0)
	if err != nil || missed != 0 || len(got) != 3 || got[0].Seq != 1 || got[2].Seq != 3 {
		t.Fatalf("first three: %v, missed %d, %v", got, missed, err)
	}
	for range 7 {
		b.Publish(Event{Kind: Link})
	}
	got, missed, err = b.After(t.Context(), 3)
	if err != nil || missed != 3 || len(got) != 4 || got[0].Seq != 7 || got[3].Seq != 10 {
		t.Fatalf("after ten, from 3: %v, missed %d, %v", got, missed, err)
	}
	if b.Last() != 10 {
		t.Errorf("last is %d, want 10", b.Last())
	}
}

func TestBus_AFollowerWaitsForTheNextEvent(t *testing.T) {
	b := NewBus(4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.After(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Fatalf("waiting ended with %v", err)
	}
	got := make(chan []Event)
	go func() {
		e, _, _ := b.After(t.Context(), 0)
		got <- e
	}()
	b.Publish(Event{Kind: Applied})
	if e := <-got; len(e) != 1 || e[0].Kind != Applied || e[0].Time.IsZero() {
		t.Fatalf("got %v", e)
	}
}

func TestBus_ABatchIsBoundedAndTheNextGoesOnFromThere(t *testing.T) {
	b := NewBus(4 * mostAtOnce)
	for range 2*mostAtOnce + 1 {
		b.Publish(Event{Kind: Link})
	}
	var seq uint64
	for _, want := range []int{mostAtOnce, mostAtOnce, 1} {
		got, missed, err := b.After(t.Context(), seq)
		if err != nil || missed != 0 || len(got) != want || got[0].Seq != seq+1 {
			t.Fatalf("after %d: %d events, missed %d, %v; want %d", seq, len(got), missed, err, want)
		}
		seq = got[len(got)-1].Seq
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := b.After(ctx, 1<<64-1); !errors.Is(err, context.Canceled) {
		t.Errorf("after the last of all numbers: %v", err)
	}
}
