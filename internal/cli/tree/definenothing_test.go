package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/cli"
)

// A definition without a switch, as a template that came out empty makes one, removes nothing before somebody has said
// so.
func TestS162_ADefinitionThatDefinesNothingIsAskedFor(t *testing.T) {
	for what, content := range map[string]string{"empty": "", "a comment": "# x\n", "three dashes": "---\n",
		"a key": "switches:\n", "a list": "switches: []\n"} {
		for _, c := range []struct {
			flags           []string
			status, applied int // applied: requests that are no dry run
			says            string
		}{
			{nil, cli.ExitUsage, 0, "add --yes if that is meant"}, {[]string{"--yes"}, 0, 1, ""},
			{[]string{"--dry-run"}, 0, 0, ""},
		} {
			t.Run(what+" "+strings.Join(c.flags, " "), func(t *testing.T) {
				f := newFleetStand(t, nil)
				file := filepath.Join(t.TempDir(), "fleet.yaml")
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				out, errs, status := f.run(append([]string{"definition", "apply", "-f", file}, c.flags...)...)
				applied := 0
				for _, q := range f.applied {
					if !q.GetDryRun() {
						applied++
					}
				}
				if status != c.status || applied != c.applied || !strings.Contains(errs, c.says) {
					t.Errorf("status %d, %d applied\n%s%s", status, applied, out, errs)
				}
			})
		}
	}
}
