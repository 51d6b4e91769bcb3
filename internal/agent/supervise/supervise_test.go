package supervise

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// manager listens as a service manager does.
func manager(t *testing.T) *net.UnixConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return c
}

func receive(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 4096)
	if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// silent fails the test if a message was sent that has not been read: a datagram on a unix socket is readable as soon
// as it is sent.
func silent(t *testing.T, c *net.UnixConn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	if n, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("sent %q (%v)", b[:n], err)
	}
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestTheLifeOfAServiceIsTold(t *testing.T) {
	c := manager(t)
	s := New(os.Getenv, discard())
	s.Ready()
	if got := receive(t, c); got != "READY=1" {
		t.Errorf("ready: %q", got)
	}
	s.Reloading()
	first, stamp, ok := strings.Cut(receive(t, c), "\n")
	usec, err := strconv.ParseUint(strings.TrimPrefix(stamp, "MONOTONIC_USEC="), 10, 64)
	if first != "RELOADING=1" || !ok || err != nil || usec == 0 {
		t.Errorf("reloading: %q %q", first, stamp)
	}
	s.Stopping(false)
	if got := receive(t, c); got != "STOPPING=1" {
		t.Errorf("stopping: %q", got)
	}
	if s.StoppedByOrder() {
		t.Error("a signal counts as an order")
	}
	s.Stopping(true)
	if receive(t, c); !s.StoppedByOrder() {
		t.Error("an order does not count as one")
	}
	silent(t, c)
}

func TestTheWatchdogIsFedAtAFractionOfItsPeriod(t *testing.T) {
	c := manager(t)
	t.Setenv("WATCHDOG_USEC", "3600000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	s := New(os.Getenv, discard())
	if s.every != 15*time.Minute {
		t.Errorf("fed every %s", s.every)
	}
	for range 100 {
		s.Alive()
	}
	if got := receive(t, c); got != "WATCHDOG=1" {
		t.Errorf("alive: %q", got)
	}
	silent(t, c)
	s.lastSign = s.lastSign.Add(-s.every)
	s.Alive()
	if got := receive(t, c); got != "WATCHDOG=1" {
		t.Errorf("alive when due: %q", got)
	}
}

func TestAWatchdogForAnotherProcessIsNotFed(t *testing.T) {
	c := manager(t)
	t.Setenv("WATCHDOG_USEC", "1")
	t.Setenv("WATCHDOG_PID", "1")
	New(os.Getenv, discard()).Alive()
	silent(t, c)
}

func TestWithoutAManagerNothingIsSent(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	var log bytes.Buffer
	s := New(os.Getenv, slog.New(slog.NewTextHandler(&log, nil)))
	s.Ready()
	s.Reloading()
	s.Alive()
	s.Stopping(true)
	if s.Present() || log.Len() > 0 {
		t.Errorf("unsupervised: %v %s", s.Present(), log.String())
	}
}

func TestAManagerThatIsGoneIsLoggedOnce(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "nobody"))
	var log bytes.Buffer
	s := New(os.Getenv, slog.New(slog.NewTextHandler(&log, nil)))
	s.Ready()
	s.Ready()
	if got := strings.Count(log.String(), "could not be reported"); got != 1 {
		t.Errorf("logged %d times: %s", got, log.String())
	}
}
