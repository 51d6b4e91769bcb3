package supervise

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Lines for the journal have priorities and no time; others have a time and no priority.
func TestHandler_LinesOfTheJournalHavePriorities(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"JOURNAL_STREAM": fmt.Sprintf("%d:%d", is.Dev, is.Ino)}
	log := slog.New(Handler(f, func(k string) string { return env[k] }, slog.LevelInfo))
	log.Error("e")
	log.With("port", "a").Warn("w", "text", "two\nlines")
	log.WithGroup("g").Info("i", "x", 1)
	log.Debug("d")
	got, err := os.ReadFile(f.Name())
	want := "<3>level=ERROR msg=e\n<4>level=WARN msg=w port=a text=\"two\\nlines\"\n<6>level=INFO msg=i g.x=1\n"
	if err != nil || string(got) != want {
		t.Errorf("%v, the journal gets\n%s\nwant\n%s", err, got, want)
	}
	var out bytes.Buffer
	for name, h := range map[string]slog.Handler{
		"no file":        Handler(&out, func(k string) string { return env[k] }, slog.LevelInfo),
		"another stream": Handler(os.Stderr, func(string) string { return "1:2" }, slog.LevelInfo),
	} {
		if _, is := h.(journal); is {
			t.Errorf("%s is taken for the journal", name)
		}
	}
	slog.New(Handler(&out, func(string) string { return "" }, slog.LevelInfo)).Error("e")
	if !strings.HasPrefix(out.String(), "time=") {
		t.Errorf("elsewhere: %s", out.String())
	}
}
