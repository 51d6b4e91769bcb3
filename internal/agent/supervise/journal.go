package supervise

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// Priorities of the journal, as sd-daemon(3) has them at the beginning of a line.
const (
	priorityError   = 3
	priorityWarning = 4
	priorityInfo    = 6
	priorityDebug   = 7
)

// Handler writes the log to out: for the journal each line has a priority, so that "journalctl -p warning" finds it,
// and no time, which the journal has itself; elsewhere it has a time.
func Handler(out io.Writer, getenv func(string) string, level slog.Level) slog.Handler {
	if !isJournal(out, getenv("JOURNAL_STREAM")) {
		return slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})
	}
	return newJournal(out, level)
}

// Priority is what the journal wants ahead of a line that is not the agent's log, such as the error of a command that a
// unit runs; it is empty where out is not the journal's stream.
func Priority(out io.Writer, getenv func(string) string, level slog.Level) string {
	if !isJournal(out, getenv("JOURNAL_STREAM")) {
		return ""
	}
	return fmt.Sprintf("<%d>", priorityOf(level))
}

// isJournal reports whether out is the stream that the journal reads, which the variable names by device and inode.
func isJournal(out io.Writer, stream string) bool {
	f, ok := out.(*os.File)
	if !ok || stream == "" {
		return false
	}
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		return false
	}
	return stream == fmt.Sprintf("%d:%d", is.Dev, is.Ino)
}

// journal puts the priority of each record ahead of its line.
type journal struct {
	slog.Handler
	line *prioritised
}

// prioritised is where the lines go; mu keeps a line and its priority together.
type prioritised struct {
	mu       sync.Mutex
	out      io.Writer
	priority int
}

func newJournal(out io.Writer, level slog.Level) slog.Handler {
	line := &prioritised{out: out}
	return journal{slog.NewTextHandler(line, &slog.HandlerOptions{Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}), line}
}

// Handle writes one record.
func (j journal) Handle(ctx context.Context, r slog.Record) error {
	j.line.mu.Lock()
	defer j.line.mu.Unlock()
	j.line.priority = priorityOf(r.Level)
	return j.Handler.Handle(ctx, r)
}

// WithAttrs is that of slog.Handler.
func (j journal) WithAttrs(attrs []slog.Attr) slog.Handler {
	return journal{j.Handler.WithAttrs(attrs), j.line}
}

// WithGroup is that of slog.Handler.
func (j journal) WithGroup(name string) slog.Handler {
	return journal{j.Handler.WithGroup(name), j.line}
}

// Write writes one line, as a handler of text gives it.
func (p *prioritised) Write(b []byte) (int, error) {
	if _, err := p.out.Write(fmt.Appendf(nil, "<%d>%s", p.priority, b)); err != nil {
		return 0, err
	}
	return len(b), nil
}

func priorityOf(l slog.Level) int {
	switch {
	case l >= slog.LevelError:
		return priorityError
	case l >= slog.LevelWarn:
		return priorityWarning
	case l >= slog.LevelInfo:
		return priorityInfo
	}
	return priorityDebug
}
