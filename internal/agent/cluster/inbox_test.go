package cluster

import (
	"context"
	"errors"
	"testing"
	"time"

	controllerv1 "heddle/api/heddle/controller/v1"
)

func numbered(n int64) *controllerv1.FollowSliceResponse {
	return &controllerv1.FollowSliceResponse{NotBefore: n}
}

// What was said before the end is taken in before anybody learns of the end, in the order in which it was said.
func TestInbox_KeepsTheOrderUpToTheEnd(t *testing.T) {
	b, why := newInbox(), errors.New("the end")
	for n := range int64(mostWaiting) {
		if err := b.put(t.Context(), numbered(n)); err != nil {
			t.Fatal(err)
		}
	}
	b.end(why)
	next := int64(0)
	err := b.each(func(m *controllerv1.FollowSliceResponse) error {
		if m.GetNotBefore() != next {
			t.Errorf("message %d where %d was to come", m.GetNotBefore(), next)
		}
		next++
		return nil
	})
	if !errors.Is(err, why) || next != mostWaiting {
		t.Errorf("%d messages, then %v", next, err)
	}
}

// What waits is bounded in number and in bytes: what is more waits for room, or for the end of the conversation.
func TestInbox_IsBounded(t *testing.T) {
	large := &controllerv1.FollowSliceResponse{Controllers: []string{string(make([]byte, mostBytesWaiting+1))}}
	for _, row := range []struct {
		name string
		m    *controllerv1.FollowSliceResponse
		fit  int
	}{{"small ones", numbered(1), mostWaiting}, {"one that is larger than the room", large, 1}} {
		t.Run(row.name, func(t *testing.T) {
			b := newInbox()
			for range row.fit {
				if err := b.put(t.Context(), row.m); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := b.put(ctx, row.m); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("one more: %v", err)
			}
			taken := make(chan struct{})
			go func() {
				defer close(taken)
				_ = b.each(func(*controllerv1.FollowSliceResponse) error { return nil })
			}()
			if err := b.put(t.Context(), row.m); err != nil {
				t.Errorf("when there is room again: %v", err)
			}
			b.end(nil)
			<-taken
		})
	}
}

// A message that cannot be taken in ends it: nothing after it is taken in.
func TestInbox_EndsWithWhatCannotBeTakenIn(t *testing.T) {
	b, why := newInbox(), errors.New("it cannot be")
	for n := range int64(2) {
		if err := b.put(t.Context(), numbered(n)); err != nil {
			t.Fatal(err)
		}
	}
	times := 0
	if err := b.each(func(*controllerv1.FollowSliceResponse) error { times++; return why }); !errors.Is(err, why) ||
		times != 1 {
		t.Errorf("%d messages taken in, then %v", times, err)
	}
}
