package tree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/api"
)

// A reload decides by the rule of a start: a file without a list of switches removes nothing, and one that lists none
// counts, without asking anybody.
func TestS161_S162_AReloadDecidesAsAStart(t *testing.T) {
	const one = "switches: [{name: lab}]\n"
	for _, c := range []struct {
		what, before, content string
		applied               bool
	}{
		{"a switch", "", one, true}, {"none on purpose", one, "switches: []\n", true},
		{"a comment behind the key", one, "switches:   # name, kind\n", false}, {"empty", one, "", false},
		{"settings of the host where a switch would go", one, "host: {macTable: 8192}\n", false},
		{"settings of the host alone", "host: {macTable: 4096}\n", "host: {macTable: 8192}\n", true},
	} {
		t.Run(c.what, func(t *testing.T) {
			s := furnished()
			s.configs = []api.AppliedConfig{{Applied: true, File: "heddle.yaml", Content: c.before}}
			con := newConsole(t, s)
			file := filepath.Join(t.TempDir(), "f.yaml")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, errs, status := con.run("apply", "--reload", "-f", file)
			applied := false
			for _, q := range s.asked {
				if q, ok := q.(api.Apply); ok && !q.DryRun {
					applied = true
				}
			}
			if applied != c.applied || (status == 0) != c.applied {
				t.Errorf("status %d, applied %v: %s", status, applied, errs)
			}
			if !c.applied && !strings.Contains(errs, "no list of switches") {
				t.Errorf("it says %s", errs)
			}
		})
	}
}
