package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/api"
)

// A join token is read from a file or from standard input, so that no list of processes shows it; help shows none.
func TestS125_AJoinTokenComesFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("hj1.file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"hj1.file": {"--token-file", file}, "hj1.stdin": {"--token-file", "-"},
		"hj1.word": {"--token", "hj1.word"}} {
		t.Run(name, func(t *testing.T) {
			s := &standIn{}
			c := newConsole(t, s)
			c.stdin = "hj1.stdin\n"
			_, errs, status := c.run(append([]string{"host", "join", "c1:7411"}, args...)...)
			if status != 0 || len(s.asked) != 1 || s.asked[0].(api.Join).Token != name {
				t.Errorf("status %d, asked for %v: %s", status, s.asked, errs)
			}
		})
	}
	c := newConsole(t, &standIn{})
	if _, errs, status := c.run("host", "join", "c1:7411", "--token-file", "-"); status != 2 ||
		!strings.Contains(errs, "there is no token") {
		t.Errorf("status %d: %s", status, errs)
	}
}
