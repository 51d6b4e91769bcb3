package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"heddle/internal/plan"
)

// TestTheManualHasEveryCommandAndEveryField writes the pages and looks for what a reader would: in heddle(1) each
// command with what it does, in heddle.yaml(5) each field of a policy, and in neither what only a web page has.
func TestTheManualHasEveryCommandAndEveryField(t *testing.T) {
	dir := t.TempDir()
	if err := WriteManual(root, dir, 0); err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		text, err := os.ReadFile(filepath.Join(dir, "man", path))
		if err != nil {
			t.Fatal(err)
		}
		return strings.NewReplacer(`\fB`, "", `\fI`, "", `\fP`, "", `\fR`, "", `\fC`, "", `\-`, "-", `\&`, "").Replace(
			string(text))
	}
	overview := read("man1/heddle.1")
	program, commands := commandTree(), 0
	walk(program, func(c *cobra.Command) {
		if c == program || c.GroupID == "" && c.Parent() == program {
			return
		}
		commands++
		if want := ".TP\n" + anchor(c) + "(1)\n" + c.Short; !strings.Contains(overview, want) {
			t.Errorf("heddle(1) lacks %q", want)
		}
	})
	if commands < 50 {
		t.Errorf("only %d commands", commands)
	}
	fields := read("man5/heddle.yaml.5")
	for _, f := range plan.Fields() {
		if !strings.Contains(fields, ".TP\n"+f.Path+"\n") {
			t.Errorf("heddle.yaml(5) lacks %s", f.Path)
		}
	}
	for _, foreign := range []string{"<!--", "](", ".md#", "|---|", ".TS"} {
		if strings.Contains(fields, foreign) {
			t.Errorf("heddle.yaml(5) has %q", foreign)
		}
	}
}

func TestTableAsList(t *testing.T) {
	got := tableAsList("| where | field | values | default |\n|---|---|---|---|\n" +
		"| host | `a` | 1–2 | 1 |\n| | `b` | text | |\n")
	if want := "\n## host\n\n`a`\n: 1–2. Default: 1\n\n`b`\n: text\n\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	got = tableAsList("| field | values | when no level sets it |\n|---|---|---|\n| `x` | true | false |\n")
	if want := "\n`x`\n: true. When no level sets it: false\n\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
