package cluster

import (
	"context"

	"golang.org/x/sync/semaphore"
	"google.golang.org/protobuf/proto"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Bounds of what may wait to be taken in. Where there is more, it waits at the controller.
const (
	// mostWaiting is how many messages wait.
	mostWaiting = 64
	// mostBytesWaiting is how many bytes they have together, but for one that is larger, which waits alone.
	mostBytesWaiting = 4 << 20
)

// inbox holds what a controller has said until it is taken in, in the order in which it was said.
type inbox struct {
	messages chan waiting
	room     *semaphore.Weighted // in bytes
	ended    error               // why no more will come; valid when messages is closed
}

// waiting is a message with the room that it takes.
type waiting struct {
	*controllerv1.FollowSliceResponse
	size int64
}

func newInbox() *inbox {
	return &inbox{messages: make(chan waiting, mostWaiting),
		room: semaphore.NewWeighted(mostBytesWaiting)}
}

// put adds a message, when there is room.
func (b *inbox) put(ctx context.Context, m *controllerv1.FollowSliceResponse) error {
	size := int64(min(proto.Size(m), mostBytesWaiting))
	if err := b.room.Acquire(ctx, size); err != nil {
		return err
	}
	select {
	case b.messages <- waiting{m, size}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end says that no more will come, and why. It is called by whoever puts, once.
func (b *inbox) end(why error) {
	b.ended = why
	close(b.messages)
}

// each has every message taken in, and returns why no more come, or why one could not be taken in.
func (b *inbox) each(take func(*controllerv1.FollowSliceResponse) error) error {
	for m := range b.messages {
		if err := take(m.FollowSliceResponse); err != nil {
			return err
		}
		b.room.Release(m.size)
	}
	return b.ended
}
