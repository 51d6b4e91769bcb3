package budget

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

func serve(t *testing.T, size int) *Server {
	t.Helper()
	path := filepath.Join(t.TempDir(), "budget")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	t.Setenv(SocketVar, path)
	s := NewServer(size)
	go s.Serve(l)
	return s
}

// taken takes a share beside the test, and sends how to give it back.
func taken(t *testing.T, weight int) <-chan func() {
	t.Helper()
	got := make(chan func(), 1)
	go func() {
		release, err := Take(weight)
		if err != nil {
			t.Error(err)
		}
		got <- release
	}()
	return got
}

// waits awaits that so many requests stand in the queue.
func waits(t *testing.T, s *Server, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		now := len(s.queue)
		s.mu.Unlock()
		if now == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait, want %d", now, n)
		}
	}
}

func TestWhoFindsNoRoomWaits(t *testing.T) {
	s := serve(t, 4)
	three := (<-taken(t, 3))
	two := taken(t, 2)
	waits(t, s, 1)
	one := taken(t, 1) // there is room for it, and yet it does not pass the other
	waits(t, s, 2)
	three()
	(<-two)()
	(<-one)()
	(<-taken(t, 4))()
}

func TestMoreThanThereIsIsAllOfIt(t *testing.T) {
	serve(t, 2)
	(<-taken(t, 100))()
	(<-taken(t, 100))()
}

func TestWhoGoesWhileItWaitsTakesNothing(t *testing.T) {
	s := serve(t, 1)
	all := <-taken(t, 1)
	r := s.ask(1)
	waits(t, s, 1)
	s.release(r)
	all()
	(<-taken(t, 1))()
}

func TestWithoutARunnerNothingIsBounded(t *testing.T) {
	t.Setenv(SocketVar, "")
	for range 3 {
		if _, err := Take(1000); err != nil {
			t.Fatal(err)
		}
	}
}
