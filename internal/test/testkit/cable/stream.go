package cable

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Stream is numbered frames from one end to another. Nobody else reads from that end meanwhile.
type Stream struct {
	t        testing.TB
	from, to *End
	src, dst [6]byte
	every    time.Duration
	sent     uint64
	received uint64
	total    chan uint64 // is given how many were sent when the last one was
	stop     context.CancelFunc
	sending  sync.WaitGroup
	taking   sync.WaitGroup
}

// streamEvery is the time between two frames of Start.
const streamEvery = time.Millisecond

// streamLook is how long a frame is awaited before it is seen whether the stream has ended.
const streamLook = 100 * time.Millisecond

// mostCPUs is how many CPUs a set of them has room for.
const mostCPUs = 1024

// numberAt is where a frame has its number, after the header and a word that tells it from others.
const (
	numberAt   = 18
	streamWord = 0x68646c6e
)

// Start sends a frame each millisecond until Stop.
func Start(t testing.TB, from, to *End, src, dst [6]byte) *Stream {
	t.Helper()
	return StartEvery(t, from, to, src, dst, streamEvery)
}

// StartEvery sends a frame each time that so much time is over, until Stop.
func StartEvery(t testing.TB, from, to *End, src, dst [6]byte, every time.Duration) *Stream {
	t.Helper()
	s := &Stream{t: t, from: from, to: to, src: src, dst: dst, every: every, total: make(chan uint64, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.sending.Go(func() { s.send(ctx) })
	taking, end := context.WithCancel(context.Background())
	s.taking.Go(func() { s.take(taking) })
	t.Cleanup(func() { // of a test that has failed
		cancel()
		end()
		s.sending.Wait()
		s.taking.Wait()
	})
	return s
}

func (s *Stream) send(ctx context.Context) {
	if err := Stay(); err != nil {
		s.t.Error(err)
		return
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for ctx.Err() == nil {
		payload := binary.BigEndian.AppendUint32(nil, streamWord)
		payload = binary.BigEndian.AppendUint64(payload, s.sent+1)
		_, err := unix.Write(s.from.fd, Frame(s.dst, s.src, 0, string(payload)))
		switch {
		case err == nil:
			s.sent++
		case !errors.Is(err, unix.ENOBUFS): // the cable took none: the machine is too busy to empty its queue
			s.t.Errorf("send on %s: %v", s.from.name, err)
			return
		}
		<-tick.C
	}
}

// Stay keeps the calling goroutine on one CPU until it ends, when its thread ends too. A veth device queues frames by
// the CPU that sends them: those of a sender that moves may overtake each other there, before they come to any switch.
func Stay() error {
	runtime.LockOSThread()
	cpu, err := CPU()
	if err != nil {
		return err
	}
	var one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("keep the sender on one CPU: %w", err)
	}
	return nil
}

// CPU is the first one that the calling thread may use.
func CPU() (int, error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return 0, fmt.Errorf("on which CPUs the sender may be: %w", err)
	}
	for cpu := range mostCPUs {
		if allowed.IsSet(cpu) {
			return cpu, nil
		}
	}
	return 0, errors.New("the sender may be on no CPU")
}

// take counts what comes, from the first frame on: a socket's buffer holds those of half a minute.
func (s *Stream) take(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var last, total uint64
	ended := func() bool {
		select {
		case total = <-s.total:
			time.AfterFunc(patience, cancel)
		default:
		}
		return total > 0 && last >= total
	}
	for ctx.Err() == nil && !ended() {
		f, err := s.to.next(streamLook)
		if err != nil {
			s.t.Error(err)
			return
		}
		if len(f) < numberAt+8 || [6]byte(f) != s.dst || binary.BigEndian.Uint32(f[14:]) != streamWord {
			continue
		}
		n := binary.BigEndian.Uint64(f[numberAt:])
		if n <= last {
			s.t.Errorf("frame %d came after frame %d", n, last)
		}
		last = n
		s.received++
	}
}

// Stop ends the stream, waits until the last frame has come, and says how many were sent and how many came.
func (s *Stream) Stop() (sent, received uint64) {
	s.t.Helper()
	s.stop()
	s.sending.Wait()
	s.total <- s.sent
	s.taking.Wait()
	return s.sent, s.received
}
