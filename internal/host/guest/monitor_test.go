package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"heddle/internal/plan/problem"
)

// hostileQEMU answers properly until the adapters have been read once, then sends large events for as long as its
// socket is read.
func hostileQEMU(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "qmp")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { defer conn.Close(); flood(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	return socket
}

func flood(conn net.Conn) {
	event := fmt.Sprintf(`{"event": "BLOCK_JOB_COMPLETED", "data": %q}`+"\n", strings.Repeat("x", 400_000))
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var q struct {
			Execute string
			ID      uint64
		}
		if json.Unmarshal(lines.Bytes(), &q) != nil {
			return
		}
		answer := "{}"
		if q.Execute == "query-rx-filter" {
			answer = "[]"
		}
		if _, err := fmt.Fprintf(conn, `{"return": %s, "id": %d}`+"\n", answer, q.ID); err != nil {
			return
		}
		if q.Execute == "query-rx-filter" {
			break
		}
	}
	for {
		if _, err := conn.Write([]byte(event)); err != nil {
			return
		}
	}
}

func TestFloodingMonitorIsLeft(t *testing.T) {
	socket := hostileQEMU(t)
	seen := make(chan Sight, 16)
	m := Watch(func(ctx context.Context, news map[string]Sight) {
		for _, s := range news {
			select {
			case seen <- s:
			case <-ctx.Done():
			}
		}
	})
	defer m.Close()
	m.Want(map[string][]string{socket: {""}})
	for late := time.After(2 * time.Minute); ; {
		select {
		case s := <-seen:
			if s.why == problem.MonitorFlood {
				return
			}
		case <-late:
			t.Fatal("a monitor that floods is not left")
		}
	}
}

func TestNextTry(t *testing.T) {
	delay := monitorRetry
	var wait time.Duration
	var waits []time.Duration
	for range 8 { // a monitor that works, but ends every session soon
		wait, delay = nextTry(delay, true, time.Second)
		waits = append(waits, wait)
	}
	want := []time.Duration{100, 200, 400, 800, 1600, 3200, 5000, 5000}
	for i := range want {
		if waits[i] != want[i]*time.Millisecond {
			t.Fatalf("waits %v, want %v ms", waits, want)
		}
	}
	if wait, delay = nextTry(delay, true, monitorRetryMax); wait != monitorRetry || delay != 2*monitorRetry {
		t.Errorf("after a long session it waits %v and then %v", wait, delay)
	}
	if wait, _ = nextTry(monitorRetryMax, false, time.Hour); wait != monitorRetryMax {
		t.Errorf("one that never served is tried again after %v", wait)
	}
}

// The agent's loop sets which monitors are watched while a session reports what it found: neither waits for the other.
func TestTheLoopIsNotHeldUpByAReport(t *testing.T) {
	m := Watch(func(context.Context, map[string]Sight) {})
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	socket := filepath.Join(t.TempDir(), "qmp")
	m.Want(map[string][]string{socket: {"net0"}})
	w := m.running[socket]
	m.found(w, true, func(*Sight) { // the report is under way
		set := make(chan struct{})
		go func() {
			defer close(set)
			m.Want(map[string][]string{socket: {"net0", "net1"}})
		}()
		select {
		case <-set:
		case <-time.After(time.Minute):
			t.Fatal("who sets the ports' adapters waits for a report, which may wait for the same lock")
		}
	})
}
