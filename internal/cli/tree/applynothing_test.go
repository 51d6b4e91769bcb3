package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/api"
	"heddle/internal/cli"
)

// An empty file, or one with only comments, declares nothing. It is valid; before it removes anything, the user is
// asked.
func TestApplyOfAFileThatDeclaresNothing(t *testing.T) {
	removes := api.Applied{Changes: []api.Change{{Kind: api.Removed, Object: api.ObjectRef{Kind: api.SwitchObject,
		Name: "lab"}}}}
	for name, content := range map[string]string{"empty": "", "comments": "# switches:\n#   - name: lab\n",
		"explicit": "switches: []\n", "null": "---\n"} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				what, answer  string
				asking        bool
				flags         []string
				changes       bool
				status, asked int // requests the agent gets
				says          string
			}{
				{what: "nobody to ask", changes: true, status: cli.ExitUsage, asked: 1,
					says: "add --yes if that is meant"},
				{what: "--yes", changes: true, flags: []string{"--yes"}, asked: 1},
				{what: "--dry-run", changes: true, flags: []string{"--dry-run"}, asked: 1},
				{what: "nothing to remove", asked: 2},
				{what: "yes", changes: true, asking: true, answer: "y\n", asked: 2, says: "- switch lab"},
				{what: "no", changes: true, asking: true, answer: "\n", status: cli.ExitFailure, asked: 1,
					says: "nothing was changed"},
				{what: "no answer", changes: true, asking: true, status: cli.ExitFailure, asked: 1,
					says: "nothing was changed"},
			} {
				s := furnished()
				if c.changes {
					s.applied = removes
				}
				con := newConsole(t, s)
				con.asking, con.stdin = c.asking, c.answer
				file := filepath.Join(t.TempDir(), "f.yaml")
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				if out := con.must("check", "-f", file); !strings.Contains(out, "is valid: 0 switches") {
					t.Errorf("%s: check: %s", name, out)
				}
				_, errs, status := con.run(append([]string{"apply", "-f", file}, c.flags...)...)
				if status != c.status || len(s.asked) != c.asked || !strings.Contains(errs, c.says) {
					t.Errorf("%s, %s: status %d, %d requests: %s", name, c.what, status, len(s.asked), errs)
				}
				applied := false
				for _, q := range s.asked {
					if q, ok := q.(api.Apply); ok && !q.DryRun {
						applied = true
					}
				}
				if want := c.status == 0 && c.what != "--dry-run"; applied != want {
					t.Errorf("%s, %s: applied: %v", name, c.what, applied)
				}
			}
		})
	}
}

func TestApplyOfAFileWithASwitchAsksNothing(t *testing.T) {
	s := furnished()
	s.applied = api.Applied{Changes: []api.Change{{Kind: api.Removed, Object: api.ObjectRef{Kind: api.SwitchObject,
		Name: "other"}}}}
	c := newConsole(t, s)
	c.stdin = "switches: [{name: lab}]\n"
	if c.must("apply", "-f", "-"); len(s.asked) != 1 {
		t.Errorf("%d requests", len(s.asked))
	}
}
