package docgen

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	controllercmd "heddle/internal/controller/cmd"
)

const outputPath = "docs/reference/output.md"

var (
	outputRow = regexp.MustCompile("(?m)^\\| (`[^|]*) \\| ([^|]+) \\|$")
	quoted    = regexp.MustCompile("`([^`]+)`")
	apiLink   = regexp.MustCompile(`\]\(([a-z-]*api\.md)#(\w+)\)`)
)

// outputRows are the rows of the page's table of commands: what a command prints, by its path without "heddle".
func outputRows(page string) map[string]string {
	_, table, _ := strings.Cut(page, "\n| command | prints |\n")
	rows := map[string]string{}
	for _, m := range outputRow.FindAllStringSubmatch(table, -1) {
		for _, c := range quoted.FindAllStringSubmatch(m[1], -1) {
			var words []string
			for _, w := range strings.Fields(c[1]) {
				if strings.ToLower(w) != w || strings.HasPrefix(w, "-") {
					break
				}
				words = append(words, w)
			}
			rows[strings.Join(words, " ")] = m[2]
		}
	}
	return rows
}

// TestOutputPageHasEveryCommand: the table has every command with -o and its output, no other command, and no message
// that the schema lacks.
func TestOutputPageHasEveryCommand(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, outputPath))
	if err != nil {
		t.Fatal(err)
	}
	rows, commands := outputRows(string(page)), map[string]bool{}
	look := func(c *cobra.Command) {
		name := strings.TrimPrefix(c.CommandPath(), "heddle ")
		if f := c.Flags().ShorthandLookup("o"); f == nil || f.Name != "output" {
			return
		}
		commands[name] = true
		if rows[name] == "" {
			t.Errorf("%s lacks a row for %q, which has -o: say which message it prints", outputPath, c.CommandPath())
		}
	}
	walk(commandTree(), look)
	walk(controllercmd.New(io.Discard, "", nil), look)
	if len(commands) < 40 {
		t.Errorf("only %d commands have -o", len(commands))
	}
	for name, prints := range rows {
		if !commands[name] {
			t.Errorf("%s has a row for %q, which is no command with -o", outputPath, name)
		}
		for _, m := range apiLink.FindAllStringSubmatch(prints, -1) {
			if !isMessage(m[1], m[2]) {
				t.Errorf("%s: %q prints %q, which is no message on %s", outputPath, name, m[2], m[1])
			}
		}
	}
}

// isMessage reports whether the schema of a page has a message whose section there has that anchor.
func isMessage(page, anchor string) bool {
	for _, s := range schemas() {
		if path.Base(s.path) != page {
			continue
		}
		for _, f := range apiFiles(s) {
			for i := range f.Messages().Len() {
				if strings.ToLower(string(f.Messages().Get(i).Name())) == anchor {
					return true
				}
			}
		}
	}
	return false
}

func TestOutputRows(t *testing.T) {
	rows := outputRows("| x | y |\n|---|---|\n| `no` | this |\n\n| command | prints |\n|---|---|\n" +
		"| `port list`, `port show PORT` | list of `Port` |\n| `stats --by switch` | sums |\n")
	want := map[string]string{"port list": "list of `Port`", "port show": "list of `Port`", "stats": "sums"}
	for name, prints := range want {
		if rows[name] != prints {
			t.Errorf("%s: %q, want %q", name, rows[name], prints)
		}
	}
	if len(rows) != len(want) {
		t.Errorf("rows %v, want %v", rows, want)
	}
}
