package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

func TestProxmoxsOwnMonitorIsShared(t *testing.T) {
	for socket, want := range map[string]bool{
		"/run/qemu-server/101.qmp": true, "/var/run/qemu-server/7.qmp": true, "/run/qemu-server/101.heddle": false,
		"/run/qemu-server/.qmp": false, "/run/qemu-server/a1.qmp": false, "/run/other/101.qmp": false, "": false,
	} {
		if shared(socket) != want {
			t.Errorf("shared(%q) = %v, want %v", socket, !want, want)
		}
	}
}

// oneAtATime is a QEMU's monitor that serves one client at a time, as QEMU does.
type oneAtATime struct {
	status, step atomic.Value // what it answers
	served       atomic.Int64 // clients so far
}

func (q *oneAtATime) serve(conn net.Conn) {
	defer conn.Close()
	q.served.Add(1)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		var c struct {
			Execute string
			ID      uint64
		}
		if json.Unmarshal(lines.Bytes(), &c) != nil {
			return
		}
		answer := "{}"
		switch c.Execute {
		case "query-rx-filter":
			answer = "[]"
		case "query-status":
			answer = fmt.Sprintf(`{"status": %q}`, q.status.Load())
		case "query-migrate":
			answer = fmt.Sprintf(`{"status": %q}`, q.step.Load())
		}
		if _, err := fmt.Fprintf(conn, `{"return": %s, "id": %d}`+"\n", answer, c.ID); err != nil {
			return
		}
	}
}

// A monitor that its manager uses too is left to it in between, and still tells that the guest has left.
func TestS99_ASharedMonitorIsLeftToItsManager(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "qemu-server")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "101.qmp"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	q := &oneAtATime{}
	q.status.Store("running")
	q.step.Store("")
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			q.serve(conn) // the next client waits meanwhile
		}
	}()
	runs := make(chan Run, 100)
	m := Watch(func(_ context.Context, news map[string]Sight) {
		for _, s := range news {
			runs <- s.Run
		}
	})
	defer m.Close()
	m.Want(map[string][]string{l.Addr().String(): {""}})
	await := func(want Run) {
		t.Helper()
		for late := time.After(time.Minute); ; {
			select {
			case now := <-runs:
				if now == want {
					return
				}
			case <-late:
				t.Fatalf("not told of %v", want)
			}
		}
	}
	await(RunHere)
	manager := func() { // as qm does: one question in a connection of its own
		t.Helper()
		conn, err := net.Dial("unix", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintln(conn, `{"execute": "query-status", "id": 1}`)
		conn.SetDeadline(time.Now().Add(time.Minute))
		if !bufio.NewScanner(conn).Scan() {
			t.Error("the manager has no answer")
		}
	}
	manager()
	q.step.Store("active")
	for range 20 {
		manager() // also while a migration is under way
	}
	q.status.Store("finish-migrate")
	await(RunLeft)
	q.step.Store("failed")
	q.status.Store("running")
	await(RunHere)
	if n := q.served.Load(); n < 23 {
		t.Errorf("%d clients were served", n)
	}
}
