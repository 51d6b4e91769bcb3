package serve

import (
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Connections that are ended to make room are told of in few lines, each with how many they were.
func TestListener_ACrowdIsToldOfInFewLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		r := NewRefusals(slog.New(slog.NewTextHandler(&log, nil)))
		const tries = 5000
		crowd := func() {
			for range tries {
				r.Note("192.0.2.1:4000", net.ErrClosed)
			}
		}
		crowd()
		time.Sleep(refusalEvery)
		crowd()
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "connections=1 ") ||
			!strings.Contains(lines[1], fmt.Sprintf("connections=%d ", tries)) {
			t.Errorf("the log is %q", lines)
		}
		if n := r.Counts()[refusedCrowded]; n != 2*tries {
			t.Errorf("%d are counted", n)
		}
	})
}
