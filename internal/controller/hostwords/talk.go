package hostwords

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// lineEvery and LineBurst are how many lines of the log are about what one host says.
const (
	lineEvery = 2 * time.Second
	LineBurst = 20
)

// Talk bounds how many lines of the log are about what one host says.
type Talk struct {
	mu    sync.Mutex
	limit *rate.Limiter
	quiet int
}

// NewTalk returns that of one host.
func NewTalk() *Talk { return &Talk{limit: rate.NewLimiter(rate.Every(lineEvery), LineBurst)} }

// Say writes a line, unless there were too many of late: the next one says how many were left out.
func (t *Talk) Say(log *slog.Logger, level slog.Level, text string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.limit.Allow() {
		t.quiet++
		return
	}
	if t.quiet > 0 {
		args = append(args, "others", t.quiet)
	}
	t.quiet = 0
	log.Log(context.Background(), level, text, args...)
}
