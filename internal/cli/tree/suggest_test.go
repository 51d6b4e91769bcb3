package tree

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"heddle/internal/cli"
)

// A word that is no command gets the commands that may be meant, wherever they are, in lines of 80 columns at most.
func TestUnknownCommand_IsAnsweredWithWhatMayBeMeant(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"history", `"heddle definition history"?`},
		{"hixtory", `"heddle definition history"`},
		{"prot", `did you mean "heddle port"?`},
		{"rolback", `"heddle definition rollback"`},
		{"settle", `did you mean "heddle port static settle"?`},
		{"definition histroy", `did you mean "heddle definition history"?`},
		{"port statik", `did you mean "heddle port static"?`},
		{"host settle", `did you mean "heddle port static settle"?`},
	} {
		t.Run(c.line, func(t *testing.T) {
			text := refusal(t, c.line)
			if !strings.Contains(text, c.want) || !strings.Contains(text, "unknown command") {
				t.Errorf("it says %q, want %q", text, c.want)
			}
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
	for _, line := range []string{"ls", "xyzzy", "q"} {
		text := refusal(t, line)
		if strings.Contains(text, "did you mean") || !strings.Contains(text, "heddle --help") {
			t.Errorf("%s: it says %q", line, text)
		}
	}
}

// refusal is what the program says of a command line that is wrong.
func refusal(t *testing.T, line string) string {
	t.Helper()
	var out, errs bytes.Buffer
	d := cli.Deps{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }}
	if status := Run(t.Context(), d, strings.Fields(line)); status != cli.ExitUsage {
		t.Errorf("%s ends with status %d and %s", line, status, errs.String())
	}
	return errs.String()
}
