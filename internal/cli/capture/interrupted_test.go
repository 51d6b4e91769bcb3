package capture

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// A capture of one host that is interrupted before it has begun says so, and leaves a file as it was.
func TestCapture_OneHostInterruptedBeforeItBegins(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "kept.pcapng")
	if err := os.WriteFile(kept, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("one host", func(t *testing.T) {
		s := &answers{}
		ctx, cancel := context.WithCancel(t.Context())
		s.capturing = func(ctx context.Context, _ func(api.CaptureEvent) error) error {
			cancel()
			<-ctx.Done()
			return ctx.Err()
		}
		var errs strings.Builder
		f := &capture{d: cli.Deps{Stdout: &errs, Stderr: &errs}, client: s, write: kept,
			out: cli.Stream{Format: "text"}}
		err := f.run(ctx)
		if err == nil || cli.ExitStatus(err) != cli.ExitFailure || errs.Len() > 0 ||
			err.Error() != "interrupted: nothing was captured, since the agent had not begun the capture" {
			t.Errorf("%v: %s", err, &errs)
		}
	})
	t.Run("while the filter is compiled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		f := &capture{d: cli.Deps{Stdout: &strings.Builder{}, Stderr: &strings.Builder{}}, client: &answers{},
			filter: "tcp",
			compile: func(ctx context.Context, _ string) ([]api.FilterInstruction, error) {
				cancel()
				return nil, ctx.Err()
			}}
		if err := f.run(ctx); err == nil || err.Error() !=
			"interrupted: nothing was captured, since the filter was not compiled yet" {
			t.Error(err)
		}
	})
	if text, err := os.ReadFile(kept); err != nil || string(text) != "kept" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}
