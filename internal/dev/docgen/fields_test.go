package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/diagnose/explain"
)

// TestThePageOfTheFileHasEveryField: the texts of "heddle explain" about fields that are not policies, and the page's
// tables of them, are both written by hand. Each such field has a row on the page, and one-word defaults agree.
func TestThePageOfTheFileHasEveryField(t *testing.T) {
	read := func(path string) string {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	file, definition := read(configurationPath), read("docs/reference/definition.md")
	for _, x := range explain.Topics() {
		if x.Kind != explain.Field {
			continue
		}
		name := x.Name[strings.LastIndexByte(x.Name, '.')+1:]
		found := false
		page := file
		if strings.HasPrefix(x.Name, "templates[]") || strings.HasPrefix(x.Name, "hosts[]") ||
			strings.HasSuffix(x.Meaning, "only in a definition.") {
			page += definition
		}
		for line := range strings.Lines(page) {
			if !strings.HasPrefix(line, "|") || !strings.Contains(line, name) {
				continue
			}
			cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
			last := strings.ReplaceAll(cells[len(cells)-1], "`", "")
			found = found || strings.ContainsAny(x.Default, " ,") || strings.Contains(last, x.Default)
		}
		if !found {
			t.Errorf("%s has no row for %s with the default %s", configurationPath, x.Name, x.Default)
		}
	}
}
