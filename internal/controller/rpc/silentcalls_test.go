package rpc

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect/v2"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// A call of a host that is silently gone fails within three seconds and says so; a busy one that answers a ping is
// waited for, as is one that has begun to answer.
func TestS133_ASilentHostIsAnsweredForSoon(t *testing.T) {
	for name, c := range map[string]struct {
		pongs, says bool
		want        connect.Code
		after       time.Duration
	}{
		"silent":     {want: connect.CodeUnavailable, after: silentTime + pongTime},
		"busy":       {pongs: true, want: connect.CodeDeadlineExceeded, after: 10 * time.Second},
		"it answers": {says: true, want: connect.CodeDeadlineExceeded, after: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(slog.New(slog.DiscardHandler), 1)
				h := &host{id: "h1", conn: &conn{answers: true, wake: make(chan struct{}, 1),
					done: make(chan struct{})}}
				f.hosts["h1"], f.names["h1"] = h, h
				began := time.Now()
				q := must(f.call("h1", &controllerv1.HostCallBegin{}))(t)
				defer q.close()
				if c.says {
					q.take(&controllerv1.HostAnswer{Call: q.id, Data: []byte("x")})
				}
				if c.pongs {
					time.AfterFunc(silentTime+time.Millisecond, func() {
						f.mu.Lock()
						defer f.mu.Unlock()
						h.conn.answered(h.conn.ask.number)
					})
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				_, err := q.whole(ctx)
				code := connect.CodeOf(err)
				if errors.Is(err, context.DeadlineExceeded) {
					code = connect.CodeDeadlineExceeded
				}
				if code != c.want || time.Since(began) != c.after {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
				if c.want == connect.CodeUnavailable && !strings.Contains(err.Error(), "was heard of it for 3s") {
					t.Error(err)
				}
			})
		})
	}
}
