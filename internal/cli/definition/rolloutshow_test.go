package definition

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// Who follows a rollout sees one row that is overwritten, however narrow the terminal is; in a file each step once.
func TestRolloutFollower_OneRowOnATerminalAndALineForEachStepElsewhere(t *testing.T) {
	long := rolloutLine(&api.Rollout{ID: "r1041", State: api.RolloutRunning, Begun: 1, Driver: "",
		Stages: []api.RolloutStage{{Stage: "1"}, {Stage: "100%"}}, Note: strings.Repeat("3 hosts make the change ", 9)})
	for _, c := range []struct {
		name  string
		width int
	}{{"wide", 100}, {"narrow", 45}} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			f := &rolloutFollower{d: cli.Deps{Stderr: &out, Watched: true, Width: c.width}}
			f.show("running1", long)
			f.show("running1", "short")
			f.clear()
			rows := strings.Split(out.String(), cli.ClearLine)
			if len(rows) != 4 || rows[2] != "short" || rows[3] != "" || strings.Contains(out.String(), "\n") {
				t.Fatalf("it shows %q", rows)
			}
			if n := utf8.RuneCountInString(rows[1]); n >= c.width || !strings.HasSuffix(rows[1], "…") ||
				!strings.HasPrefix(rows[1], "rollout r1041 is running: stage 1 of 2") {
				t.Errorf("%d characters: %q", n, rows[1])
			}
		})
	}
	t.Run("in a file", func(t *testing.T) {
		var out bytes.Buffer
		f := &rolloutFollower{d: cli.Deps{Stderr: &out}}
		for _, step := range []string{"a", "a", "b"} {
			f.show(step, "line "+step)
		}
		f.clear()
		if out.String() != "line a\nline b\n" {
			t.Errorf("it says %q", out.String())
		}
	})
}
