package docgen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heddle/internal/spec"
)

// TestExamplesInThePagesAreValid reads every YAML block of the hand-written pages as a configuration.
func TestExamplesInThePagesAreValid(t *testing.T) {
	names := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/how-to/*/*.md", "docs/explanation/*.md", "docs/tutorial/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, more...)
	}
	found := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range yamlBlocks(string(text)) {
			found++
			if err := validExample(name, block); err != nil {
				t.Errorf("%s, YAML block %d: %v\n%s", name, i+1, err, block)
			}
		}
	}
	if found == 0 {
		t.Error("no page has an example")
	}
}

// validExample reads an example as the kind of file that it is: a host's file, or a definition for many hosts.
func validExample(name, block string) error {
	if strings.Contains("\n"+block, "\ntemplates:") || strings.Contains("\n"+block, "\nhosts:") {
		_, err := spec.ParseDefinition(name, []byte(block))
		return err
	}
	_, err := spec.Parse(name, []byte(block))
	return err
}

// yamlBlocks are the fenced YAML blocks of a page.
func yamlBlocks(page string) []string {
	var blocks []string
	for {
		_, rest, ok := strings.Cut(page, "```yaml\n")
		if !ok {
			return blocks
		}
		block, rest, _ := strings.Cut(rest, "```")
		blocks, page = append(blocks, block), rest
	}
}
