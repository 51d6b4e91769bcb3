package cable

import (
	"context"
	"encoding/binary"
	"sync"
	"testing"
	"time"
)

// Stream is numbered frames from one end to another.
type Stream struct {
	t        testing.TB
	from, to *End
	src, dst [6]byte
	sent     uint64
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// streamEvery is the time between two frames.
const streamEvery = time.Millisecond

// numberAt is where a frame has its number, after the header and a word that tells it from others.
const (
	numberAt   = 18
	streamWord = 0x68646c6e
)

// Start sends a frame each millisecond until Stop.
func Start(t testing.TB, from, to *End, src, dst [6]byte) *Stream {
	t.Helper()
	s := &Stream{t: t, from: from, to: to, src: src, dst: dst}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.done.Go(func() { s.send(ctx) })
	return s
}

func (s *Stream) send(ctx context.Context) {
	tick := time.NewTicker(streamEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		payload := binary.BigEndian.AppendUint32(nil, streamWord)
		s.sent++
		payload = binary.BigEndian.AppendUint64(payload, s.sent)
		s.from.Send(Frame(s.dst, s.src, 0, string(payload)))
		<-tick.C
	}
}

// Stop ends the stream, waits until the last frame has come, and says how many were sent and how many came.
func (s *Stream) Stop() (sent, received uint64) {
	s.t.Helper()
	s.stop()
	s.done.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var last uint64
	if err := s.to.Watch(ctx, func(f []byte) { // what came before waits in the socket's buffer
		if len(f) < numberAt+8 || [6]byte(f) != s.dst || binary.BigEndian.Uint32(f[14:]) != streamWord {
			return
		}
		n := binary.BigEndian.Uint64(f[numberAt:])
		if n <= last {
			s.t.Errorf("frame %d came after frame %d", n, last)
		}
		last = n
		received++
		if n == s.sent {
			cancel()
		}
	}); err != nil {
		s.t.Error(err)
	}
	return s.sent, received
}
